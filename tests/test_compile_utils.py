"""Caches of compiled functions by name."""

import functools
import gc
import weakref

import pytest

from haliax._src.compile_utils import clear_caches, compile_cache
from helpers import count_traces


class Callable:
    def __call__(self):
        """Do nothing."""

    def method(self):
        """Do nothing."""


def function():
    """Do nothing."""


@compile_cache
def make(names, *args, **kwargs):
    """Make one."""
    return [names, args, kwargs]


CALLABLES = [
    (function, ("function", "function")),
    (functools.partial(functools.partial(function)), ("function", "function")),
    (Callable(), ("Callable", "Callable")),
    (Callable().method, ("method", "Callable.method")),
    (len, ("len", "len")),
    (Callable, ("Callable", "Callable")),
]


@pytest.mark.parametrize(("fn", "names"), CALLABLES)
def test_the_function_gets_the_names(fn, names):
    assert make(fn, 1, b=2) == [names, (1,), {"b": 2}]


def test_equal_names_and_arguments_give_the_same_object():
    assert make(function, 1, b=2) is make(functools.partial(function), 1, b=2)
    assert make.__doc__ == "Make one."


@pytest.mark.parametrize("other", [(len, 1), (function, 2), (function, 1.0), (function, True), (function,)])
def test_anything_else_gives_another(other):
    assert make(function, 1) is not make(*other)


def test_arguments_that_can_not_be_hashed_are_not_kept():
    assert make(function, [1]) == make(function, [1])
    assert make(function, [1]) is not make(function, [1])


def test_clear_caches():
    before = make(function, "cleared")
    clear_caches()
    assert make(function, "cleared") is not before


def test_the_cache_is_bounded_and_goes_with_its_function():
    counted = count_traces(lambda names, i: i)
    cached = compile_cache(counted)
    for i in [*range(257), 0]:
        cached(function, i)
    assert counted.traces == 258
    gone = weakref.ref(counted)
    del counted, cached
    gc.collect()
    assert gone() is None


def test_an_error_of_the_function_is_its_own():
    @compile_cache
    def fail(names):
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        fail(function)


def test_what_is_no_callable():
    with pytest.raises(TypeError) as error:
        make(3)
    assert str(error.value) == "compile_cache: the first argument is an int; expected a callable."
