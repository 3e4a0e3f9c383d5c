"""The version of haliax, read by the build and by `haliax.__version__`."""

__version__ = "1.5.0.dev0"
