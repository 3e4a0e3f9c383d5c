"""The architecture, checked on the syntax trees: one total order of modules, top-level imports, short files."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"

# The reading order. A module imports only from modules above it; a new module is added where it belongs.
ORDER = """
    __about__ _src
    types field testing
    _src.util _src.callables _src.jax_compat _src.errors _src.installation
    _src.refused _src.compile_utils _src.jax_helpers
    _src.axis _src.axis_sets _src.axis_order _src.dslice axis
    _src.parsing _src.resources _src.kernels _src.layout_text _src.transfers _src.layouts
    _src.array_base _src.repr _src.treescope_view _src.array_protocols _src.annotations
    _src.explicit_axes _src.explicit_loops _src.broadcasting
    _src.describe _src.families _src.wrapping _src.operators
    _src.elementwise _src.reductions _src.quantiles _src.axiswise
    _src.rearrange_plan _src.rearrange _src.reshape _src.comparison _src.selection _src.matrices
    _src.padding _src.sets _src.bits
    _src.index_items _src.windows _src.index_plan _src.at_index _src.index_program _src.indexing _src.at _src.slicing
    _src.dot _src.einsum_plan _src.einsum
    _src.named_array _src.creation _src.joining core wrap
    haxtyping ops fft poly specialized_fns _src.ref_parts ref
    _src.tree tree util
    _src.distributed jax_utils
    _src.declared_axes _src.sharding _src.best_effort _src.make_mesh random
    _src.along _src.vmap _src.checkpointing _src.scan hof tree_util
    _src.forced_host_shim _src.mesh_mismatch
    _src.signature _src.jit_options _src.jit_plan _src.differences _src.retraces _src.program _src.aot
    _src.hlo_collectives _src.explanation _src.explain _src.named_jit _src.shard_map partitioning
    _src.call_costs bench
    _src.safetensors_io _src.tensor_parts _src.tensor_files
    _src.state_dict_naming _src.state_dict_layouts _src.state_dict_entries _src.state_dict_loading _src.state_dict_torch
    _src.state_dict state_dict
    _src.shard_grid _src.visualize _src.plot _src.module_contents _src.diagnose debug
    _src.dot_general _src.fp8 _src.layers _src.spatial
    nn.activations nn.mup nn.normalization nn.dropout nn.pool nn.conv nn.loss nn.attention
    nn.ragged_dot nn.linear nn.embedding nn.mlp nn.scan nn
    quantization
""".split()
ORDER = [f"haliax.{name}" for name in ORDER] + ["haliax"]

FACADES = "axis core ops specialized_fns wrap tree util jax_utils hof partitioning state_dict debug nn".split()
FACADES = [f"haliax.{name}" for name in FACADES] + ["haliax"]

# imported where they are used, so that haliax works without them
OPTIONAL_DEPENDENCIES = {"aqt", "matplotlib", "pytest", "tokamax", "torch", "treescope"}
MAX_LINES = 500


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


FILES = sorted((SRC / "haliax").rglob("*.py"))
MODULES = {module_name(path): ast.parse(path.read_text()) for path in FILES}
PACKAGES = {module_name(path) for path in FILES if path.stem == "__init__"}


def imported(module: str, tree: ast.AST) -> Iterator[str]:
    """The absolute dotted names that the statements below `tree` import, as far down as they are modules of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = node.level - (module in PACKAGES)  # a package is its own first parent
            parents = module.split(".")[: -up or None] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            names = [f"{base}.{alias.name}" for alias in node.names]
            yield from (name if name in ORDER else base for name in names)


each_module = pytest.mark.parametrize("module", MODULES)
each_facade = pytest.mark.parametrize("module", [name for name in FACADES if name in MODULES])


def test_every_module_has_one_place():
    assert len(ORDER) == len(set(ORDER))
    assert MODULES.keys() <= set(ORDER), "add the new module to ORDER, where it belongs"
    assert set(FACADES) <= set(ORDER)


@each_module
def test_imports_point_up(module):
    above = set(ORDER[: ORDER.index(module)])
    ours = {name for name in imported(module, MODULES[module]) if name.split(".")[0] == "haliax"}
    assert ours <= above


@each_module
def test_functions_import_only_optional_dependencies(module):
    functions = (n for n in ast.walk(MODULES[module]) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    local = {name.split(".")[0] for function in functions for name in imported(module, function)}
    assert local <= OPTIONAL_DEPENDENCIES


def test_jax_internals_are_used_in_one_file():
    users = {module for module, tree in MODULES.items() if "jax._src" in ast.unparse(tree)}
    assert users <= {"haliax._src.jax_compat"}


@each_facade
def test_facades_define_nothing(module):
    assert [node.name for node in MODULES[module].body if isinstance(node, ast.FunctionDef | ast.ClassDef)] == []


@each_facade
def test_facades_reexport_visibly(module):
    """Type checkers see a re-exported name if it is imported as itself or listed in `__all__`."""
    nodes = list(ast.walk(MODULES[module]))
    listed = {node.value for node in nodes if isinstance(node, ast.Constant)} | {"annotations"}
    aliases = [alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert [a.name for a in aliases if a.asname != a.name and (a.asname or a.name) not in listed] == []


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "examples"])
def test_files_are_short(folder):
    lines = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in (ROOT / folder).rglob("*.py")}
    assert {path: n for path, n in lines.items() if n > MAX_LINES} == {}
