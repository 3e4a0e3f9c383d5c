"""Layers, activations and losses for named arrays."""

from haliax._src.axis import Axis as Axis
from haliax._src.named_array import NamedArray as NamedArray
from haliax.nn import (
    activations as activations,
    attention as attention,
    conv as conv,
    embedding as embedding,
    linear as linear,
    loss as loss,
    mlp as mlp,
    mup as mup,
    normalization as normalization,
    pool as pool,
    scan as scan,
)
from haliax.nn.activations import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    hard_sigmoid as hard_sigmoid,
    hard_silu as hard_silu,
    hard_swish as hard_swish,
    hard_tanh as hard_tanh,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    quick_gelu as quick_gelu,
    relu as relu,
    relu6 as relu6,
    relu_squared as relu_squared,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    soft_sign as soft_sign,
    softplus as softplus,
    swish as swish,
)
from haliax.nn.conv import Conv as Conv, ConvTranspose as ConvTranspose
from haliax.nn.dropout import Dropout as Dropout, dropout as dropout
from haliax.nn.embedding import Embedding as Embedding
from haliax.nn.linear import Linear as Linear, MoELinear as MoELinear
from haliax.nn.loss import (
    binary_cross_entropy_loss as binary_cross_entropy_loss,
    cross_entropy_loss as cross_entropy_loss,
    cross_entropy_loss_and_log_normalizers as cross_entropy_loss_and_log_normalizers,
    one_hot as one_hot,
    reduce_loss as reduce_loss,
)
from haliax.nn.mlp import MLP as MLP
from haliax.nn.normalization import (
    LayerNorm as LayerNorm,
    RmsNorm as RmsNorm,
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    softmax as softmax,
    standardize as standardize,
)
from haliax.nn.pool import max_pool as max_pool, mean_pool as mean_pool, min_pool as min_pool
from haliax.nn.ragged_dot import ragged_dot as ragged_dot
from haliax.nn.scan import BlockSeq as BlockSeq, ScanCheckpointPolicy as ScanCheckpointPolicy, Stacked as Stacked
