"""Whether pyright accepts `accepted.py`, and finds in `rejected.py` the errors that its lines name, and no others.

A line of `rejected.py` names its errors as `# error: reportCallIssue, reportArgumentType`. Run by `make types`.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
FILES = [HERE / "accepted.py", HERE / "rejected.py"]


def expected(text: str) -> dict[int, list[str]]:
    """The rules named by each line that names any."""
    marks = ((n, re.search(r"# error: (.+)$", line)) for n, line in enumerate(text.splitlines(), 1))
    return {n: sorted(mark[1].split(", ")) for n, mark in marks if mark}


def found(report: dict, path: Path) -> dict[int, list[str]]:
    """The rules that pyright says each line of a file breaks."""
    rules = defaultdict(list)
    for item in report["generalDiagnostics"]:
        if Path(item["file"]) == path and item["severity"] == "error":
            rules[item["range"]["start"]["line"] + 1].append(item.get("rule", item["message"]))
    return {n: sorted(names) for n, names in rules.items()}


def differences(report: dict) -> Iterator[str]:
    """A line of text for each line of code about which pyright says anything else than expected."""
    for path in FILES:
        want, have = expected(path.read_text()), found(report, path)
        for n in sorted(want.keys() | have.keys()):
            if want.get(n) != have.get(n):
                wanted, got = (", ".join(rules.get(n, ["no error"])) for rules in (want, have))
                yield f"{path.name}:{n}: expected {wanted}; pyright reports {got}"


def main() -> int:
    """Run pyright and print what is wrong."""
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", *map(str, FILES)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1], check=False)
    try:
        report = json.loads(result.stdout)
    except ValueError:
        sys.exit(f"pyright failed: {result.stdout}{result.stderr}")
    if report["summary"]["filesAnalyzed"] < len(FILES):
        sys.exit(f"pyright has read {report['summary']['filesAnalyzed']} of {len(FILES)} files.")
    wrong = list(differences(report))
    print("\n".join(wrong) or f"{len(FILES)} files of typed usages: as expected.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
