"""Tests against torch, which only `make test-torch` installs and runs.

The folder is not called `torch`: it is on the import path of the tests, and would be found in the place of torch.
"""

import torch

# the matrices are small, and the machine is shared
torch.set_num_threads(1)
