"""The public interface, held against `data/contract.json`: the names and parameters that programs of users rely on.

Ours may accept more: further names, parameters that are optional, keywords in other positions. Every public callable
has its own name, a signature and a docstring that tells of its arguments, its result and its source.
"""

import ast
import dataclasses
import enum
import importlib
import inspect
import json
import pkgutil
import re
import typing
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import haliax

TESTS = Path(__file__).parent
CONTRACT = json.loads((TESTS / "data" / "contract.json").read_text())

# What is not there yet, by module; a module that is missing lacks all its names.
PENDING: dict[str, set[str]] = {}
# What their modules hold by accident: modules they import, and type variables.
ACCIDENTAL = {
    "haliax.nn": {"haliax", "hax"},
    "haliax.nn.conv": {"T"},
    "haliax.nn.scan": {"S"},
}
# Parameters that differ on purpose, each with the reason.
DIFFERENT = {
    "dot": "keywords that it does not know are an error",
    "rearrange": "axes and bindings are parameters with names",
    "BlockFoldable": "prevent_cse=None leaves the choice to the checkpoint policy",
    "ResourceAxis": "names of mesh axes, of which no instance is made",
}
# Modules and functions with no counterpart elsewhere, and so no source.
OWN = {
    "haliax.axis",
    "haliax.concat_axis_specs",
    "haliax.core.enable_shape_checks",
    "haliax.core.rename",
    "haliax.jax_utils.ensure_scalar",
    "haliax.ops.raw_array_or_scalar",
    "haliax.quantization.accumulate_gradients",
    "haliax.quantization.partition_for_grad_overwrite",
    "haliax.quantization.quantize_linear_layers",
    "haliax.testing",
    "haliax.util",
    "haliax.wrap",
}

each_module = pytest.mark.parametrize("module", CONTRACT)


def load(module: str) -> ModuleType:
    """The module, an empty one if it is missing."""
    return importlib.import_module(module) if importlib.util.find_spec(module) else ModuleType(module)


@each_module
def test_names(module):
    missing = {name for name in CONTRACT[module] if not hasattr(load(module), name)}
    assert missing == PENDING.get(module, set()) | ACCIDENTAL.get(module, set())


# parameters -----------------------------------------------------------------------------------------------------------


def parameters_of(obj: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(obj).parameters.values())


def parsed(parameters: str) -> list[inspect.Parameter]:
    """The parameters that the contract writes as `(a, *, b=1)`; a default that is no literal is `...` there."""
    return parameters_of(eval(f"lambda {parameters[1:-1]}: None"))


def departures(theirs: list[inspect.Parameter], ours: list[inspect.Parameter]) -> list[str]:
    """How a call that fits their parameters may not fit ours."""
    if [p.kind for p in theirs] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
        return []  # an opaque wrapper
    by_name = {p.name: p for p in ours}
    kinds = {p.kind for p in ours}
    found = []
    for place, p in enumerate(theirs):
        mine = by_name.get(p.name)
        if p.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            found += [] if p.kind in kinds else [f"no {p}"]
            continue
        if mine is None or mine.kind == inspect.Parameter.POSITIONAL_ONLY:
            found += [] if inspect.Parameter.VAR_KEYWORD in kinds else [f"no {p.name}="]
            continue
        if p.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD and ours[place : place + 1] != [mine]:
            found.append(f"{p.name} is not at {place}")
        if p.default is not inspect.Parameter.empty:
            same = mine.default is not inspect.Parameter.empty and p.default in (..., mine.default)
            found += [] if same else [f"{p}, not {mine.default}"]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    known = {p.name for p in theirs}
    new = (p for p in ours if p.name not in known and p.kind not in variable and p.default is inspect.Parameter.empty)
    return found + [f"{p.name} is required" for p in new]


def class_departures(cls: type, entry: dict[str, Any]) -> dict[str, Any]:
    """The constructor, the fields and the members of a class that differ."""
    found: dict[str, Any] = {}
    if (
        entry["init"] != "attribute"
        and not issubclass(cls, enum.Enum)
        and (wrong := departures(parsed(entry["init"]), parameters_of(cls)))
    ):
        found["__init__"] = wrong
    fields = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    found |= {name: "no such field" for name in entry["fields"] if name not in fields and not hasattr(cls, name)}
    # what an enumeration of strings, or an error, has from Python
    builtin = {
        name for base in cls.__mro__ if base.__module__ == "builtins" and base is not object for name in vars(base)
    }
    for name, kind in entry["members"].items():
        if name in builtin:
            continue
        if not hasattr(cls, name) and name not in fields and name not in inspect.get_annotations(cls):
            found[name] = "missing"
        elif "(" in kind:
            drop = 1 if kind.startswith("(") else 0  # `self`, whatever it is called
            theirs = parsed(kind[kind.index("(") :])[drop:]
            ours = parameters_of(getattr(cls, name))[drop:]
            if wrong := departures(theirs, ours):
                found[name] = wrong
    return found


@each_module
def test_parameters(module):
    found = {}
    for name, entry in CONTRACT[module].items():
        ours = getattr(load(module), name, None)
        if isinstance(entry, dict) and isinstance(ours, type):
            found[name] = class_departures(ours, entry)
        elif isinstance(entry, str) and entry.startswith("(") and callable(ours):
            found[name] = departures(parsed(entry), parameters_of(ours))
    found = {name: wrong for name, wrong in found.items() if wrong}
    assert {name: wrong for name, wrong in found.items() if name not in DIFFERENT} == {}
    assert DIFFERENT.keys() & CONTRACT[module].keys() - PENDING.get(module, set()) == found.keys()


# names, signatures, docstrings ----------------------------------------------------------------------------------------


@cache
def public() -> dict[str, Any]:
    """The public callables of ours by the first path at which they are found; modules of their own before facades."""
    found: dict[str, Any] = {}
    seen = set()
    for info in pkgutil.walk_packages(haliax.__path__, "haliax."):
        if "._" in info.name:
            continue
        module = importlib.import_module(info.name)
        for name, obj in vars(module).items():
            ours = getattr(obj, "__module__", None) == info.name or name in CONTRACT.get(info.name, ())
            if name.startswith("_") or not callable(obj) or not ours or id(obj) in seen:
                continue
            seen.add(id(obj))
            found[f"{info.name}.{name}"] = obj
    for name in haliax.__all__:
        obj = getattr(haliax, name)
        if callable(obj) and id(obj) not in seen:
            found[f"haliax.{name}"] = obj
    return {path: obj for path, obj in found.items() if str(getattr(obj, "__module__", "")).startswith("haliax")}


def test_names_of_public_callables():
    wrong = {path: obj.__name__ for path, obj in public().items() if obj.__name__ != path.split(".")[-1]}
    assert wrong == {"haliax.axis.ds": "dslice"}  # two names of a class


def missing_sections(path: str, obj: Any) -> list[str]:
    """The sections that a docstring lacks; that of a predicate, or of a class, may be one sentence."""
    doc = inspect.getdoc(obj) or ""
    if isinstance(obj, type) or doc.startswith("Whether"):
        return [] if doc else ["all"]
    needed = ["Args:"] if parameters_of(obj) else []
    if inspect.signature(obj).return_annotation not in (None, "None"):
        needed.append("Yields:" if "Yields:" in doc else "Returns:")
    if path not in OWN and path.rpartition(".")[0] not in OWN:
        needed.append("Source:")
    return [section for section in needed if section not in doc]


def test_docstrings_of_public_callables():
    missing = {path: missing_sections(path, obj) for path, obj in public().items()}
    assert {path: sections for path, sections in missing.items() if sections} == {}


def test_type_hints_of_public_callables():
    members = [
        getattr(member, "__func__", member)
        for obj in public().values()
        if isinstance(obj, type)
        for member in vars(obj).values()
    ]
    for obj in [*public().values(), *filter(inspect.isfunction, members)]:
        typing.get_type_hints(obj, localns={"Figure": Any})  # of matplotlib, which may be missing


def test_all_is_complete():
    tree = ast.parse(Path(haliax.__file__).read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imports for alias in node.names} - {"__version__"}
    assert set(haliax.__all__) == names
    assert len(haliax.__all__) == len(names)


def test_every_name_is_used_by_a_test():
    texts = (path.read_text() for path in TESTS.rglob("*.py") if path.name != Path(__file__).name)
    used = set(re.findall(r"\w+", "\n".join(texts)))
    found = {name: getattr(load(module), name, None) for module in CONTRACT for name in CONTRACT[module]}
    found |= {name: getattr(haliax, name) for name in haliax.__all__}
    # what serves annotations alone: type variables, unions, protocols
    at_run_time = {name for name, obj in found.items() if callable(obj) and not getattr(obj, "_is_protocol", False)}
    assert at_run_time - used == set()
