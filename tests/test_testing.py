"""Decorators that skip tests."""

import sys

import pytest

from haliax import testing


def test_a_test_with_enough_devices_runs():
    @testing.skip_if_not_enough_devices(8)
    def on_eight(x):
        return x

    assert on_eight(3) == 3
    assert on_eight.__name__ == "on_eight"


@pytest.mark.parametrize(("reason", "reported"), [(None, "needs 9 devices"), ("too few", "too few")])
def test_a_test_without_enough_devices_is_skipped(reason, reported):
    test = testing.skip_if_not_enough_devices(9, reason)(lambda: pytest.fail("it ran"))
    with pytest.raises(pytest.skip.Exception, match=f"^{reported}$"):
        test()


def test_torch(monkeypatch):
    monkeypatch.setattr(testing, "has_torch", lambda: True)
    assert testing.skip_if_no_torch(lambda: "ran")() == "ran"
    monkeypatch.setattr(testing, "has_torch", lambda: False)
    with pytest.raises(pytest.skip.Exception, match="torch is not installed"):
        testing.skip_if_no_torch(lambda: "ran")()


def test_asking_for_torch_does_not_import_it():
    before = "torch" in sys.modules
    assert isinstance(testing.has_torch(), bool)
    assert ("torch" in sys.modules) is before
