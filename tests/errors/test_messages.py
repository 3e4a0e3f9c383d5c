"""Every wrong call of the tables raises the class of error that it says, with the message that it says."""

import ast
import importlib
import inspect

import pytest

TOPICS = """
    arrays_as_values axes contraction creation elementwise functions indexing layers loops modules partitioning patterns
    randomness reductions reshape selection updates
""".split()


def table(topic):
    """The cases of a topic, each with the source of its call as its id."""
    module = importlib.import_module(f"errors.{topic}")
    calls = next(node.value for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.Assign))
    ids = [ast.unparse(case.elts[0].body) for case in calls.elts]
    return [pytest.param(*case, id=name) for case, name in zip(module.CASES, ids, strict=True)]


@pytest.mark.parametrize(("call", "error", "message"), [case for topic in TOPICS for case in table(topic)])
def test_message(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
    assert type(raised.value) is error
