"""Plays a story on a real graph and on plain states, and compares them at every step.

Every call is also noted as a line of Python, so that a failure comes with a script that shows it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

from tests.lives import comparison, printer, rankings, rules
from tests.lives.blueprint import Blueprint, spelled
from tests.lives.doors import Doors
from tests.lives.evaluator import Evaluator
from tests.lives.junction import Junction
from tests.lives.parser import parse
from tests.lives.rules import NEW, RefusedError
from tests.lives.state import Dictionary, State
from tests.lives.story import Op
from tests.lives.translation import translate
from tests.lives.values import identify, to_json

import omnigraph
from omnigraph.errors import HistoryReclaimedError, MergeConflictError, OmniGraphError


class DifferenceError(AssertionError):
    """The program and the model disagree. `kind` says about what, for shrinking."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


@dataclass
class Commit:
    parents: tuple[str, ...]
    state: State


class Player:
    def __init__(self, shape: Blueprint, folder: Path) -> None:
        self.shape, self.folder = shape, folder
        self.place = str(folder / "graph")
        self.script = [
            "import datetime, omnigraph, pyarrow as pa", "from datetime import timedelta",
            f"g = omnigraph.init('graph', '''\n{shape.text({})}''')",
        ]  # fmt: skip
        self.graph = omnigraph.init(self.place, shape.text({}))
        self.outcomes: Counter[str] = Counter()
        self.commits: dict[str, Commit] = {}
        self.heads: dict[str, str] = {}
        self.trails: dict[str, list[str]] = {"main": []}
        self.parents: dict[str, str | None] = {"main": None}
        self.cleaned = 0
        self._move("main", State.empty(shape), ())

    # Moving on.

    def on(self, branch: str) -> omnigraph.Graph:
        return self.graph if branch == "main" else self.graph.on(branch)

    def state(self, branch: str) -> State:
        return self.commits[self.heads[branch]].state

    def _head(self, branch: str) -> str:
        return next(iter(self.on(branch).commits())).id

    def _move(self, branch: str, state: State, parents: tuple[str, ...]) -> None:
        """Take over what a branch shows after a write."""
        head = self._head(branch)
        if head == self.heads.get(branch):
            if state.rows != self.state(branch).rows or state.names != self.state(branch).names:
                raise DifferenceError(
                    "lost write", f"no commit on {branch}, and rows should differ"
                )
            return
        if head not in self.commits:
            self.commits[head] = Commit(parents, state)
        self.heads[branch] = head
        self.trails[branch].append(head)

    def play(self, op: Op) -> None:
        if op.branch not in self.heads:
            op = replace(op, branch="main")
        outcome = getattr(self, f"_{op.kind}")(op)
        self.outcomes[f"{op.kind} {outcome}"] += 1

    def _attempt(self, line: str, call: Callable[[], Any]) -> OmniGraphError | None:
        """Make a call; an error of ours is returned, every other one is a failure."""
        self.script.append(line)
        try:
            call()
        except OmniGraphError as error:
            self.script[-1] = (
                f"try:\n    {line}\nexcept omnigraph.OmniGraphError as e: print(repr(e))"
            )
            return error
        except Exception as error:
            raise DifferenceError(
                f"foreign {type(error).__name__}", f"{line}: {error!r}"
            ) from error
        return None

    def _written(
        self, op: Op, line: str, call: Callable[[], Any], wanted: State | None, why: str
    ) -> str:
        """A write that must be done, or must be refused without a trace."""
        error = self._attempt(line, call)
        if wanted is None:
            if error is None:
                raise DifferenceError("accepted", f"{line}\nshould be refused: {why}")
            if error.code not in (
                "invalid_data",
                "key_conflict",
                "invalid_argument",
                "query_error",
            ):
                raise DifferenceError("refused otherwise", f"{line}\n{error!r} instead of: {why}")
            self._unmoved(op.branch, line)
            return "refused"
        if error is not None:
            raise DifferenceError(f"refused {error.code}", f"{line}\n{error!r}")
        self._learn(op.branch, wanted)
        self._move(op.branch, wanted, (self.heads[op.branch],))
        return "done"

    def _unmoved(self, branch: str, line: str) -> None:
        if self._head(branch) != self.heads[branch]:
            raise DifferenceError("moved", f"{line}\nwas refused, and the branch has another head")

    def _learn(self, branch: str, state: State) -> None:
        """Ids that the program makes up are taken over from what it says it inserted."""
        if not any(id_.startswith(NEW) for rows in state.rows.values() for id_ in rows):
            return
        names = Dictionary(self.shape, state.names)
        made: dict[str, list[tuple[str, Any]]] = {}
        for change in self.on(branch).commit_changes(self._head(branch)):
            if change.op.value == "insert":
                made.setdefault(names.types[change.type_name], []).append((change.id, change.after))
        for type_, rows in state.rows.items():
            for id_ in [i for i in rows if i.startswith(NEW)]:
                rows_made = made.get(type_, [])
                fits = [
                    n
                    for n, (_, after) in enumerate(rows_made)
                    if self._equal(type_, rows[id_], after, state)
                ]
                if not fits:
                    raise DifferenceError("insert", f"{type_} {rows[id_]} is not among {rows_made}")
                real, _ = rows_made.pop(fits[0])
                rows[real] = rows.pop(id_)

    def _equal(self, type_: str, row: dict[str, Any], after: Any, state: State) -> bool:
        names = Dictionary(self.shape, state.names)
        wanted = {now: row[first] for now, first in names.props[type_].items()}
        wanted |= {end: row[end] for end in ("src", "dst") if end in row}
        held = {name: value for name, value in dict(after).items() if name != "id"}
        return set(held) == set(wanted) and all(
            comparison.same(wanted[n], held[n], state, names) for n in wanted
        )

    # Writes.

    def _mutate(self, op: Op) -> str:
        state = self.state(op.branch)
        write = translate(op.given["write"], state.names)
        text = printer.write(write)
        if parse(text) != write:
            raise DifferenceError("parser", f"{text}\n{parse(text)}\n{write}")
        params = op.given["params"]
        wanted, why = self._predict(lambda: rules.Mutation(self.shape, state, params).run(text))
        line = f"g.on({op.branch!r}).mutate({text!r}, params={params!r})"
        return self._written(
            op, line, lambda: self.on(op.branch).mutate(text, params=params), wanted, why
        )

    def _predict(self, run: Callable[[], State]) -> tuple[State | None, str]:
        try:
            return run(), ""
        except RefusedError as error:
            return None, str(error)

    def _ingest(self, op: Op) -> str:
        state, mode = self.state(op.branch), op.given["mode"]
        records = op.given["records"]
        wanted, why = self._predict(lambda: rules.ingest(self.shape, state, records, mode))
        envelopes = [self._envelope(record, state) for record in records]
        graph = self.on(op.branch)
        if op.given["door"] == "dicts":
            line = f"g.on({op.branch!r}).ingest({envelopes!r}, {mode!r})"
            return self._written(op, line, lambda: graph.ingest(envelopes, mode), wanted, why)
        data = "\n".join(json.dumps(e) for e in envelopes).encode()
        if op.given["door"] == "bytes":
            line = f"g.on({op.branch!r}).ingest({data!r}, {mode!r})"
            return self._written(op, line, lambda: graph.ingest(data, mode), wanted, why)
        path = self.folder / "rows.jsonl"
        path.write_bytes(data)
        line = f"open('rows.jsonl', 'wb').write({data!r}); "
        line += f"g.on({op.branch!r}).load('rows.jsonl', {mode!r}, engine='embedded')"
        call = lambda: graph.load(str(path), mode, engine="embedded")  # noqa: E731
        return self._written(op, line, call, wanted, why)

    def _envelope(self, record: Any, state: State) -> dict[str, Any]:
        type_, id_, row = record
        now = spelled(state.names, type_)
        data = {
            spelled(state.names, type_, name): to_json(value)
            for name, value in row.items()
            if name not in ("src", "dst")
        }
        if id_ is not None:
            data["id"] = id_
        if "src" not in row:
            return {"type": now, "data": data}
        return {"edge": now, "from": row["src"], "to": row["dst"], "data": data}

    def _offer(self, op: Op) -> str:
        doors = Doors(Random(op.given["seed"]), self.shape, self.state(op.branch).names)
        what, call = doors.offer()
        error = self._attempt(f"pass  # offered: {what}", lambda: call(self.on(op.branch)))
        if error is None:
            raise DifferenceError("door", f"accepted {what}")
        self._unmoved(op.branch, what)
        return "refused"

    # Branches.

    def _branch(self, op: Op) -> str:
        name = op.given["name"]
        if name in self.heads:
            return "there already"
        self._must(
            f"g.on({op.branch!r}).create_branch({name!r})",
            lambda: self.on(op.branch).create_branch(name),
        )
        self.heads[name] = self.heads[op.branch]
        self.trails[name] = [self.heads[name]]
        self.parents[name] = op.branch
        self._move(name, self.state(op.branch), (self.heads[op.branch],))
        return "done"

    def _must(self, line: str, call: Callable[[], Any]) -> None:
        if error := self._attempt(line, call):
            raise DifferenceError(f"refused {error.code}", f"{line}\n{error!r}") from error

    def _drop(self, op: Op) -> str:
        name = op.given["name"]
        if name not in self.heads or name in self.parents.values():
            return "not possible"
        self._must(f"g.delete_branch({name!r})", lambda: self.graph.delete_branch(name))
        for kept in (self.heads, self.trails, self.parents):
            del kept[name]
        return "done"

    def _ancestors(self, commit: str) -> set[str]:
        found: set[str] = set()
        ahead = [commit]
        while ahead:
            at = ahead.pop()
            if at not in found:
                found.add(at)
                ahead += self.commits[at].parents
        return found

    def _bases(self, ours: str, theirs: str) -> list[str]:
        """The newest commits that both sides share."""
        shared = self._ancestors(ours) & self._ancestors(theirs)
        return [c for c in shared if not any(c in self._ancestors(o) for o in shared if o != c)]

    def _merge(self, op: Op) -> str:
        source, target = op.given["source"], op.branch
        if source not in self.heads or source == target:
            return "not possible"
        ours, theirs = self.heads[target], self.heads[source]
        bases = self._bases(ours, theirs)
        if len(bases) > 1:
            return "not possible: several bases"
        if theirs in self._ancestors(ours) or ours in self._ancestors(theirs):
            return self._joined(
                target, source, self.state(target if theirs in self._ancestors(ours) else source)
            )
        base = self.commits[bases[0]].state
        plain = Junction(self.shape, base, self.state(target), self.state(source), None)
        decided = Junction(
            self.shape, base, self.state(target), self.state(source), op.given["winner"]
        )
        if not plain.conflicts:
            return self._joined(target, source, plain.state)
        if op.given["winner"] and not decided.broken:
            return self._joined(target, source, decided.state, op.given["winner"]) + " by a winner"
        line = f"g.on({target!r}).merge({source!r})"
        error = self._attempt(line, lambda: self.on(target).merge(source))
        if not isinstance(error, MergeConflictError):
            raise DifferenceError(
                "merge", f"{line}\n{error!r} instead of conflicts: {plain.conflicts}"
            )
        self._unmoved(target, line)
        return "conflict"

    def _joined(self, target: str, source: str, wanted: State, winner: str | None = None) -> str:
        line = f"g.on({target!r}).merge({source!r}, strategy={winner!r})"
        self._must(line, lambda: self.on(target).merge(source, strategy=winner))
        self._move(target, wanted, (self.heads[target], self.heads[source]))
        self._compare_all(target)
        return "done"

    # Schema and maintenance.

    def _rename(self, op: Op) -> str:
        state, what = self.state(op.branch), op.given["what"]
        new = state.copy()
        short = what.split(".")[-1]
        new.names[what] = f"{short}X{op.given['turn']}"
        old = state.names.get(what, short)
        if old == new.names[what]:
            return "not possible"
        text = self.shape.text(new.names, {what: old})
        self._must(
            f"g.on({op.branch!r}).apply_schema('''{text}''')",
            lambda: self.on(op.branch).apply_schema(text),
        )
        self._move(op.branch, new, (self.heads[op.branch],))
        return "done"

    def _optimize(self, op: Op) -> str:
        return self._upkeep(op, "optimize")

    def _indices(self, op: Op) -> str:
        return self._upkeep(op, "ensure_indices")

    def _upkeep(self, op: Op, verb: str) -> str:
        self._must(f"g.on({op.branch!r}).{verb}()", lambda: getattr(self.on(op.branch), verb)())
        self._move(op.branch, self.state(op.branch), (self.heads[op.branch],))
        return "done"

    def _cleanup(self, op: Op) -> str:
        keep = op.given["keep"]
        line = f"g.cleanup(keep={keep}, grace=timedelta(0), confirm=True)"
        self._must(line, lambda: self.graph.cleanup(keep=keep, grace=timedelta(0), confirm=True))
        self.cleaned = keep
        return "done"

    def _reopen(self, op: Op) -> str:
        self.script.append("g = omnigraph.open('graph')")
        self.graph = omnigraph.open(self.place)
        return "done"

    # Reads.

    def _query(self, op: Op) -> str:
        trail = self.trails[op.branch]
        back = min(op.given["back"], len(trail) - 1)
        commit = trail[-1 - back] if back else None
        state = self.commits[commit or self.heads[op.branch]].state
        query = translate(op.given["query"], state.names)
        text, params = printer.query(query), op.given["params"]
        if parse(text) != query:
            raise DifferenceError("parser", f"{text}\n{parse(text)}\n{query}")
        rows: list[dict[str, Any]] = []
        given = f"{text!r}, params={params!r}, commit={commit!r}"
        line = f"print(g.on({op.branch!r}).query({given}).rows())"
        error = self._attempt(
            line,
            lambda: rows.extend(
                self.on(op.branch).query(text, params=params, commit=commit).rows()
            ),
        )
        if self.cleaned and back >= self.cleaned and isinstance(error, HistoryReclaimedError):
            return "gone"
        if error:
            raise DifferenceError(f"query {error.code}", f"{text}\n{error!r}")
        answer = Evaluator(self.shape, state, params).answer(text)
        wrong = comparison.differ(answer, rows, state, Dictionary(self.shape, state.names))
        if wrong:
            raise DifferenceError(
                "answer", f"{text}\nparams {params}\n{wrong}\ngot {rows}\nnot {answer.rows}"
            )
        return "old" if back else "full" if rows else "empty"

    def _rank(self, op: Op) -> str:
        state = self.state(op.branch)
        answers: list[list[dict[str, Any]]] = []
        text = ""

        def ask() -> None:
            answers.append(self.on(op.branch).query(text).rows())

        for limit in (op.given["limit"], 1000):
            text = rankings.render(op.given, state.names, limit)
            if error := self._attempt(f"print(g.on({op.branch!r}).query({text!r}).rows())", ask):
                raise DifferenceError(f"query {error.code}", f"{text}\n{error!r}")
        wrong = rankings.judge(op.given, state, *answers)
        if wrong:
            raise DifferenceError(op.given["kind"], f"{text}\n{wrong}")
        return op.given["kind"]

    def _compare_all(self, branch: str) -> None:
        """Every row of a branch, as an export shows it."""
        state = self.state(branch)
        names = Dictionary(self.shape, state.names)
        held: dict[str, dict[str, Any]] = {name: {} for name in state.rows}
        lines = b"".join(self.on(branch).export_lines()).decode().splitlines()
        for record in map(json.loads, lines):
            type_ = names.types[record.get("type") or record["edge"]]
            data = record["data"]
            row = {first: data.get(now) for now, first in names.props[type_].items()}
            if "edge" in record:
                row |= {"src": record["from"], "dst": record["to"]}
            held[type_][data["id"] if "id" in data else self._exported_id(type_, row)] = row
        for type_, rows in state.rows.items():
            wanted = {i: {n: _exported(v) for n, v in row.items()} for i, row in rows.items()}
            found = {i: {n: _exported(v) for n, v in row.items()} for i, row in held[type_].items()}
            if wanted != found:
                raise DifferenceError("rows", f"{type_} on {branch}: {found}\ninstead of {wanted}")

    def _exported_id(self, type_: str, row: dict[str, Any]) -> str:
        node = self.shape.node(type_)
        assert node.key is not None, "an export without ids"
        key = row[node.key]
        return identify(date.fromisoformat(key) if node.prop(node.key).kind == "Date" else key)

    def finish(self) -> None:
        """At the end every branch is compared whole, and the files are checked."""
        for branch in self.heads:
            self._compare_all(branch)
        found = self.graph.verify().findings
        if found:
            raise DifferenceError("fsck", str(found))


def _exported(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return [_exported(v) for v in value]
    return str(to_json(value)).replace("+00:00", "Z").replace(".000Z", "Z")
