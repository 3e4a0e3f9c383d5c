"""Two distributions in one folder: the older marin-haliax installs a package named `haliax` too.

Installing one beside the other mixes their files, and removing either then takes away files of both.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Iterator
from pathlib import Path

from haliax._src.errors import problem

_REMEDY = "Remove them and install haliax again: pip uninstall -y {names}; pip install haliax"


def warn_if_mixed(package: str | Path) -> None:
    """Warn if more than one distribution has installed `haliax` into the folder that a package lies in.

    A `haliax` that is found first on the path while another one lies in a folder of its own is no mixture.

    Args:
        package: The folder of the package.
    """
    folder = Path(package).parent
    installed = sorted(_installed(folder))
    if any(name != "haliax" for name, _ in installed) or len(installed) > 1:
        given = " and ".join(f"{name} {version}" for name, version in installed)
        verb = "are" if len(installed) > 1 else "is"
        names = " ".join(sorted({"haliax", *(name for name, _ in installed)}))
        text = problem(
            "haliax",
            f"{given} {verb} installed in {folder}",
            "each has a package named haliax, so that their files are mixed",
            _REMEDY.format(names=names),
        )
        # where haliax is imported: the caller of its __init__, which calls this
        warnings.warn(text, stacklevel=3)


def _installed(folder: Path) -> Iterator[tuple[str, str]]:
    """The names and versions of the distributions in a folder that have a package `haliax`."""
    for name in ("haliax", "marin-haliax"):
        for found in importlib.metadata.distributions(name=name, path=[str(folder)]):
            yield name, found.version
