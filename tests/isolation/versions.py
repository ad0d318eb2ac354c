"""The order of each key's appends, and the anomalies that lists show without any cycle.

The longest list that was read of a key is its order; every other read must be a prefix of it.

    duplicate append      a value occurs twice in a list
    incompatible order    two reads of a key of which neither is a prefix of the other
    garbage read          a value that nobody appended
    internal              a read that contradicts an earlier operation of its own transaction
    G1a                   a read of an append that failed
    G1b                   a read that ends between two appends of one transaction to one key
    dirty update          an append that succeeded follows one that failed
    lost append           an acknowledged append that a later read of the whole key does not show
    lost update           two transactions read the same list of a key and both appended to it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.isolation.history import Anomaly, Append, Outcome, Transaction

Orders = Mapping[str, Sequence[int]]
Writers = Mapping[tuple[str, int], Transaction]


def infer_orders(history: Sequence[Transaction]) -> dict[str, tuple[int, ...]]:
    """Per key, the longest list that any transaction read; failed transactions do not count."""
    longest: dict[str, tuple[int, ...]] = {}
    for each in history:
        if each.outcome is Outcome.FAILED:
            continue
        for key, values in each.external_reads.items():
            if len(values) > len(longest.get(key, ())):
                longest[key] = values
    return longest


def writers_of(history: Sequence[Transaction]) -> dict[tuple[str, int], Transaction]:
    return {(a.key, a.value): each for each in history for a in each.appends}


def find_direct(history: Sequence[Transaction], orders: Orders) -> Iterator[Anomaly]:
    writers = writers_of(history)
    seen = [each for each in history if each.outcome is not Outcome.FAILED]
    for each in seen:
        yield from _read_anomalies(each, orders, writers)
        yield from _internal(each)
    yield from _dirty_updates(orders, writers)
    yield from _lost_appends(seen)
    yield from _lost_updates(seen)


def _read_anomalies(reader: Transaction, orders: Orders, writers: Writers) -> Iterator[Anomaly]:
    for key, values in reader.external_reads.items():
        if len(set(values)) < len(values):
            yield Anomaly("duplicate append", (reader.name,), key)
        if values != tuple(orders.get(key, ())[: len(values)]):
            yield Anomaly("incompatible order", (reader.name,), key)
        for value in values:
            writer = writers.get((key, value))
            if writer is None:
                yield Anomaly("garbage read", (reader.name,), f"{key} {value}")
            elif writer.outcome is Outcome.FAILED:
                yield Anomaly("G1a", (reader.name, writer.name), f"{key} {value}")
        yield from _intermediate(reader, key, values, writers)


def _intermediate(
    reader: Transaction, key: str, values: tuple[int, ...], writers: Writers
) -> Iterator[Anomaly]:
    writer = writers.get((key, values[-1])) if values else None
    if writer is None or writer is reader:
        return
    last = [a.value for a in writer.appends if a.key == key][-1]
    if last != values[-1]:
        yield Anomaly("G1b", (reader.name, writer.name), f"{key} {values[-1]}")


def _internal(txn: Transaction) -> Iterator[Anomaly]:
    """Within a transaction: a read continues the last read of its key by the own appends since."""
    known: dict[str, tuple[int, ...]] = {}
    own: dict[str, tuple[int, ...]] = {}
    for each in txn.operations:
        if isinstance(each, Append):
            own[each.key] = (*own.get(each.key, ()), each.value)
            continue
        mine = own.get(each.key, ())
        if each.key in known:
            agrees = each.values == known[each.key] + mine
        else:
            agrees = each.values[len(each.values) - len(mine) :] == mine
        if not agrees:
            yield Anomaly("internal", (txn.name,), each.key)
        known[each.key], own[each.key] = each.values, ()


def _dirty_updates(orders: Orders, writers: Writers) -> Iterator[Anomaly]:
    for key, order in orders.items():
        failed = None
        for value in order:
            writer = writers.get((key, value))
            if writer is None:
                continue
            if failed and writer.outcome is Outcome.OK:
                yield Anomaly("dirty update", (failed.name, writer.name), key)
                break
            if writer.outcome is Outcome.FAILED:
                failed = writer


def _lost_appends(history: Sequence[Transaction]) -> Iterator[Anomaly]:
    """Only a read that began after the append was acknowledged proves that it is lost."""
    newest: dict[str, tuple[float, tuple[int, ...], str]] = {}
    for each in history:
        for key, values in each.external_reads.items():
            newest[key] = max(newest.get(key, (each.begin, values, each.name)),
                              (each.begin, values, each.name))  # fmt: skip
    for each in history:
        if each.outcome is not Outcome.OK or each.end is None:
            continue
        for append in each.appends:
            begin, values, reader = newest.get(append.key, (0.0, (), ""))
            if each.end < begin and append.value not in values:
                yield Anomaly("lost append", (each.name, reader), f"{append.key} {append.value}")


def _lost_updates(history: Sequence[Transaction]) -> Iterator[Anomaly]:
    first: dict[tuple[str, tuple[int, ...]], str] = {}
    for each in history:
        if each.outcome is not Outcome.OK:
            continue
        appended = {append.key for append in each.appends}
        for key, values in each.external_reads.items():
            if key not in appended:
                continue
            if (key, values) in first:
                yield Anomaly("lost update", (first[key, values], each.name), key)
            first.setdefault((key, values), each.name)
