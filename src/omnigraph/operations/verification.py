"""What a check of a graph found: the result of `fsck`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One disagreement. `part` is file, manifest, reference, table, index, constraint, tag,
    derived or recovery."""

    part: str
    where: str
    message: str
    severity: str = "error"
    hint: str | None = None


@dataclass
class Verification:
    """All findings, and the amount of checked data."""

    findings: list[Finding] = field(default_factory=list)
    branches: int = 0
    commits: int = 0
    tables: int = 0
    rows: int = 0

    @property
    def is_clean(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    def add(self, part: str, where: str, message: str, **more: Any) -> None:
        self.findings.append(Finding(part, where, message, **more))

    @property
    def paths(self) -> frozenset[str]:
        """The files that findings name so far."""
        return frozenset(each.where.rpartition(": ")[2] for each in self.findings)

    def to_dict(self) -> dict[str, Any]:
        return {
            "clean": self.is_clean,
            "branches": self.branches,
            "commits": self.commits,
            "tables": self.tables,
            "rows": self.rows,
            "findings": [asdict(finding) for finding in self.findings],
        }
