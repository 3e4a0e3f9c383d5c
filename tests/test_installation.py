"""Another distribution with a package `haliax` in the same folder: said at import, with what to do."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import haliax
from haliax._src.installation import warn_if_mixed

PACKAGE = Path(haliax.__file__).parent


def install(folder: Path, name: str, version: str) -> None:
    """What pip leaves in a folder to tell of a distribution."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


MIXED = {
    "marin-haliax beside ours": (
        [("haliax", "2.0.0"), ("marin-haliax", "0.2.227.dev40316220070")],
        "haliax 2.0.0 and marin-haliax 0.2.227.dev40316220070 are installed in {folder}; each has a package named"
        " haliax, so that their files are mixed. Remove them and install haliax again: pip uninstall -y haliax"
        " marin-haliax; pip install haliax",
    ),
    "ours over marin-haliax, without pip": (
        [("marin-haliax", "1.4")],
        "marin-haliax 1.4 is installed in {folder}; each has a package named haliax, so that their files are mixed."
        " Remove them and install haliax again: pip uninstall -y haliax marin-haliax; pip install haliax",
    ),
    "an older haliax that was not removed": (
        [("haliax", "1.4.dev443"), ("haliax", "2.0.0")],
        "haliax 1.4.dev443 and haliax 2.0.0 are installed in {folder}; each has a package named haliax, so that their"
        " files are mixed. Remove them and install haliax again: pip uninstall -y haliax; pip install haliax",
    ),
}
APART = {
    "nothing": [],
    "ours": [("haliax", "2.0.0")],
    "others": [("haliax", "2.0.0"), ("marin-levanter", "0.2"), ("haliax-extras", "1.0"), ("equinox", "0.13.3")],
}


@pytest.mark.parametrize("case", MIXED)
def test_two_in_one_folder(tmp_path, case):
    installed, message = MIXED[case]
    for name, version in installed:
        install(tmp_path, name, version)
    with pytest.warns(UserWarning) as caught:
        warn_if_mixed(tmp_path / "haliax")
    assert [str(warning.message) for warning in caught] == ["haliax: " + message.format(folder=tmp_path)]


@pytest.mark.parametrize("case", APART)
def test_one_in_a_folder(tmp_path, case):
    for name, version in APART[case]:
        install(tmp_path, name, version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_mixed(tmp_path / "haliax")


@pytest.mark.parametrize("statement", ["import haliax", "from haliax.nn import Linear"])
def test_import_says_so_in_the_line_that_imports(tmp_path, statement):
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    install(elsewhere, "marin-haliax", "1.4")
    site.mkdir()
    (site / "haliax").symlink_to(PACKAGE)
    (tmp_path / "user.py").write_text(f"{statement}\nprint('it works')\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(elsewhere)])}

    def run() -> tuple[str, str]:
        done = subprocess.run([sys.executable, tmp_path / "user.py"], env=environment, capture_output=True, text=True)
        return done.stdout, done.stderr

    assert run() == ("it works\n", ""), "one in a folder of its own, later on the path, is no mixture"
    install(site, "marin-haliax", "1.4")
    out, err = run()
    assert out == "it works\n"
    assert err.startswith(f"{tmp_path / 'user.py'}:1: UserWarning: haliax: marin-haliax 1.4 is installed in {site};")
