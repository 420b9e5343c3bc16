"""The measurements of MLIR's "Chapter H: Reproducing Halide Schedule".

A channeled convolution by the document's schedules, by the automatic one, by Halide
and as loops in C; and the loops, script and assembly of each of nanoloom's.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from nanoloom.compiler import Report as CompilerReport
from nanoloom.compiler import partition_model, scheduled
from nanoloom.emit import emit_kernels
from nanoloom.errors import Error
from nanoloom.nest.printer import print_nest
from nanoloom.schedule.language import Schedule
from nanoloom.target.cached_host import to_dict
from nanoloom.target.facts import Target
from nanoloom_papers.reproduce import array_files
from nanoloom_papers.reproduce.channeled import Convolution, draw, right, written
from nanoloom_papers.reproduce.channeled_forms import FORMS
from nanoloom_papers.reproduce.channeled_peers import OWN, options_of
from nanoloom_papers.reproduce.contenders import NANOLOOM, Remote
from nanoloom_papers.reproduce.jobs import Job
from nanoloom_papers.reproduce.measurement import Row, Setting, agrees, race
from nanoloom_papers.reproduce.roofline import limits

QUICK_SIZES = Convolution(2, 6, 11, 72, 12)
KINDS = (NANOLOOM.key, *FORMS)
NEST, SCRIPT, ASSEMBLY = "nest.txt", "transform.mlir", "s"


@dataclass(frozen=True)
class Plan:
    """What is measured.  forms: of nanoloom's schedules."""

    forms: tuple[str, ...] = KINDS
    quick: bool = False

    @property
    def sizes(self) -> Convolution:
        return QUICK_SIZES if self.quick else Convolution()


def run(plan: Plan, setting: Setting) -> Row:
    """Everybody who is right, in turns; for others the reason is in the row."""
    sizes = plan.sizes
    setting.say("drawing", 0, 0)
    numbers = draw(sizes)
    wanted = right(sizes, numbers)
    place = Path(tempfile.mkdtemp(prefix="convolution-", dir=setting.folder))
    try:
        arrays = place / "arrays.npz"
        array_files.save(arrays, numbers)
        facts = {
            "sizes": astuple(sizes),
            "target": to_dict(setting.target),
            "cache": str(place / "cache"),
        }
        row = Row(sizes, limits(setting.target, 1))
        row.absent |= setting.company.absent()
        job = Job(1, arrays=str(arrays), facts=facts)
        found = open_all(plan, row, job, setting)
        race(row, [x for x in found if agrees(x, wanted, row)], setting, "measuring")
        return row
    finally:
        shutil.rmtree(place, ignore_errors=True)


def open_all(plan: Plan, row: Row, job: Job, setting: Setting) -> list[Remote]:
    """Everybody who can do it, in the order of the table."""
    found: list[Remote] = []
    for peer in (NANOLOOM, *setting.company.peers):
        if peer.key in row.absent or peer.key in set(KINDS) - set(plan.forms):
            continue
        setting.say(f"{peer.name}: opening", 0, 0)
        function = OWN if peer.key in KINDS else ""
        try:
            named = replace(job, task=peer.key)
            found.append(setting.company.open(peer.key, named, function))
        except Error as error:
            row.absent[peer.key] = str(error)
    return found


def listings(form: str, sizes: Convolution, target: Target) -> Mapping[str, str]:
    """What a schedule makes: its loops, its script and its assembly, by file ending.

    Raises Error where the schedule does not fit.
    """
    options = options_of(form, target)
    program = partition_model(written(sizes), options, CompilerReport())
    (kernel,) = program.kernels.values()
    schedule = scheduled(kernel, options)
    assert isinstance(schedule, Schedule)
    texts: dict[str, str] = {
        NEST: f"{schedule}\n\n{print_nest(schedule.apply(kernel.nest))}\n",
        SCRIPT: schedule.to_transform(kernel.nest),
    }

    def keep(stage: str, name: str, text: str) -> None:
        del stage, name
        texts[ASSEMBLY] = text

    emit_kernels([kernel], "asm", options, keep)
    return texts
