"""An embedding: a vector for each element of a vocabulary."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax

from haliax._src import elementwise
from haliax._src.array_base import NamedArrayBase
from haliax._src.axis import Axis, AxisSpec, axis_spec_to_tuple
from haliax._src.dot import dot
from haliax._src.index_items import parse_index
from haliax._src.indexing import read
from haliax._src.jax_helpers import as_key
from haliax._src.layers import hashable_axes, require_inputs, require_single_axis
from haliax._src.named_array import NamedArray
from haliax._src.rearrange import axis_spec_rearrange
from haliax._src.reshape import flatten_axes, unflatten_axis
from haliax._src.state_dict import ModuleWithStateDictSerialization
from haliax.nn.mup import AbstractEmbeddingReparam, EmbeddingStandardParam, ReparamEnabled
from haliax.random import truncated_normal
from haliax.tree_util import resize_axis


class Embedding(ModuleWithStateDictSerialization, ReparamEnabled):
    """A table with a vector for each element of a vocabulary.

    Args:
        weight: The vectors, with the axes `Vocab` and `Embed`.
        Vocab: The axis of the vocabulary.
        Embed: The axes of a vector.
    """

    weight: NamedArray
    Vocab: Axis = eqx.field(static=True)
    Embed: AxisSpec = eqx.field(static=True)
    _reparam_cls: type[AbstractEmbeddingReparam] = eqx.field(static=True, default=EmbeddingStandardParam)

    @staticmethod
    def init(
        Vocab: Axis,
        Embed: AxisSpec,
        *,
        init_scale: float = 1,
        key: jax.Array,
        initializer_range: float | None = None,
        reparam_cls: type[AbstractEmbeddingReparam] = EmbeddingStandardParam,
    ) -> Embedding:
        """A layer with random vectors: normal ones, cut at three standard deviations.

        Args:
            Vocab: The axis of the vocabulary.
            Embed: The axes of a vector.
            init_scale: A factor on the standard deviation that the parametrisation gives.
            key: The random key.
            initializer_range: Another name of `init_scale`, which it overrides.
            reparam_cls: The parametrisation.

        Returns:
            The layer.

        Raises:
            TypeError: If `Vocab` is not a single Axis.
        """
        op = "Embedding.init"
        require_single_axis(op, "Vocab", Vocab)
        Embed = hashable_axes(op, Embed)
        axes = hashable_axes(op, (Vocab, *axis_spec_to_tuple(Embed)))
        weight: Any = truncated_normal(as_key(op, key), axes, -3, 3)
        scale = init_scale if initializer_range is None else initializer_range
        return Embedding(weight * (scale * reparam_cls.init_scale(Vocab, Embed)), Vocab, Embed, reparam_cls)

    def __call__(self, input_ids: NamedArrayBase | int, *, key: jax.Array | None = None) -> NamedArray:
        """The vectors of elements of the vocabulary; `embed` under the name that layers have."""
        return self.embed(input_ids)

    def embed(self, input_ids: NamedArrayBase | int) -> NamedArray:
        """The vectors of elements of the vocabulary.

        Args:
            input_ids: Integers with any axes; one outside the vocabulary counts as the nearest one inside.

        Returns:
            An array with the axes of `input_ids`, then `Embed`.
        """
        embeds = read("Embedding", self.weight, parse_index("Embedding", self.weight, {self.Vocab: input_ids}))
        scale = self.reparam.active_scale
        return embeds if scale == 1 else elementwise.multiply(embeds, scale)

    def unembed(self, input_embeds: NamedArray) -> NamedArray:
        """The products of vectors with those of all elements of the vocabulary, as logits.

        Args:
            input_embeds: An array with the axes `Embed`, and any others.

        Returns:
            An array with the other axes, then `Vocab`.

        Raises:
            ValueError: If an axis is missing or has another size.
        """
        require_inputs("Embedding.unembed", input_embeds, self.Embed)
        logits = dot(input_embeds, self.weight, axis=self.Embed)
        scale = self.reparam.unembed_active_scale
        return logits if scale == 1 else elementwise.multiply(logits, scale)

    def resize_embeddings(self, new_size: int, key: jax.Array | None = None) -> Embedding:
        """A layer for a larger or a smaller vocabulary, which keeps the first vectors.

        Args:
            new_size: The size of the new vocabulary.
            key: The random key for new vectors; without it they are the mean of all vectors. See
                `haliax.tree_util.resize_axis`.

        Returns:
            The new layer.
        """
        weight = resize_axis(self.weight, self.Vocab, new_size, key)
        return dataclasses.replace(self, weight=weight, Vocab=self.Vocab.resize(new_size))

    def flatten_for_export(self) -> Embedding:
        """The layer with one axis for a vector, as `torch.nn.Embedding` has it: `__EMBED__` in the place of several."""
        axes = axis_spec_to_tuple(self.Embed)
        if len(axes) == 1:
            return self
        weight = axis_spec_rearrange(flatten_axes(self.weight, axes, "__EMBED__"), (..., self.Vocab, "__EMBED__"))
        return dataclasses.replace(self, weight=weight, Embed=weight.resolve_axis("__EMBED__"))

    def unflatten_from_export(self, template: Embedding) -> Embedding:
        """The layer with the axes of `template`, from which `flatten_for_export` made those of this one."""
        axes = axis_spec_to_tuple(template.Embed)
        if len(axes) == 1:
            return self
        weight = axis_spec_rearrange(unflatten_axis(self.weight, "__EMBED__", axes), template.weight.axis_names)
        return dataclasses.replace(self, weight=weight, Embed=template.Embed)

    @property
    def reparam(self) -> AbstractEmbeddingReparam:
        """The parametrisation, for the axes of this layer."""
        return self._reparam_cls(self.Embed, self.Vocab)
