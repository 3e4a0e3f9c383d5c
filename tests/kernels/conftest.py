"""The conditions under which the kernels of tokamax are tried on a CPU, on top of those of all tests.

Three ways, and no run on hardware among them: the interpreters of JAX compute what a kernel would, with nan in all the
memory that it has not written; programs are lowered for a GPU or TPU; and the compiler for TPUs compiles them.
"""

import os

# what the compiler for TPUs would look for on the machine
os.environ |= {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_WORKER_HOSTNAMES": "localhost",
}

import jax

# tokamax broadcasts by position
jax.config.update("jax_numpy_rank_promotion", "allow")
