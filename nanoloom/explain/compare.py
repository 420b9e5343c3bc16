"""Two reports of a model beside each other: what got slower, and what else changed.

Kernels of two versions, targets or precisions are cut differently.  What is compared
are groups: kernels that have nodes of the model in common, in either report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.explain.report import Explanation, KernelReport

SLOWER, FASTER, ALIKE = "slower", "faster", "within the spread"


@dataclass(frozen=True)
class Change:
    """Kernels of the same nodes in two reports.

    layers: that they are named for.  before, after: seconds of a run.  verdict: SLOWER
    or FASTER where the times from the 10th to the 90th percentile do not overlap.
    differences: in words.
    """

    layers: tuple[str, ...]
    before: float
    after: float
    verdict: str
    differences: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Of the second time to the first; None where that is nothing."""
        return self.after / self.before if self.before else None


def compare(before: Explanation, after: Explanation) -> tuple[Change, ...]:
    """The groups, what got slower by most first.

    Raises Error for a report without times, or of other nodes.
    """
    for report in (before, after):
        if report.measured is None:
            hint = "leave --target out, or measure there and bring the report (--json)"
            raise Error("was not measured", where=report.model or "a report", hint=hint)
    if not ({*nodes_of(before.kernels)} & {*nodes_of(after.kernels)}):
        raise Error(
            f"{before.model or 'one'} and {after.model or 'the other'} have no node in"
            " common",
            hint="compare two reports of one model",
        )
    changes = (change(*group) for group in groups(before.kernels, after.kernels))
    return tuple(sorted(changes, key=lambda each: each.before - each.after))


Kernels = list[KernelReport]


def groups(
    before: Sequence[KernelReport], after: Sequence[KernelReport]
) -> Iterator[tuple[Kernels, Kernels]]:
    """The kernels that are linked by nodes in common."""
    made: list[tuple[set[str], Kernels, Kernels]] = []
    for side, kernels in enumerate((before, after)):
        for kernel in kernels:
            names = {*nodes_of([kernel])}
            linked = [group for group in made if group[0] & names]
            made = [group for group in made if not group[0] & names]
            own: tuple[set[str], Kernels, Kernels] = (names, [], [])
            own[1 + side].append(kernel)  # type: ignore[union-attr] - a list: made above
            for nodes, old, new in linked:
                own = (own[0] | nodes, old + own[1], new + own[2])
            made.append(own)
    for _, old, new in made:
        yield old, new


def nodes_of(kernels: Sequence[KernelReport]) -> Iterator[str]:
    """Names by which kernels know each other."""
    for kernel in kernels:
        yield from kernel.nodes or kernel.layers


def change(before: Kernels, after: Kernels) -> Change:
    layers = dict.fromkeys(x for k in before or after for x in k.layers)
    verdict = ALIKE
    if total(after, "low") > total(before, "high"):
        verdict = SLOWER
    elif total(after, "high") < total(before, "low"):
        verdict = FASTER
    times = total(before, "measured"), total(after, "measured")
    return Change(tuple(layers), *times, verdict, tuple(differences(before, after)))


def total(kernels: Kernels, what: str) -> float:
    """Of times of kernels."""
    return sum(getattr(kernel, what) or 0.0 for kernel in kernels)


def differences(before: Kernels, after: Kernels) -> Iterator[str]:
    """What is not the same beside the times."""
    if len(before) != len(after):
        yield f"{len(before)} kernels, now {len(after)}"
    for what, get in (
        ("schedule", lambda k: (k.reason,)),
        ("limit", lambda k: (k.limit,)),
        ("slow", lambda k: k.fallbacks),
    ):
        old = {text for kernel in before for text in get(kernel) if text}
        new = {text for kernel in after for text in get(kernel) if text}
        if old != new:
            gone, come = (", ".join(sorted(x)) for x in (old - new, new - old))
            yield f"{what}: {gone or 'none'}, now {come or 'none'}"
