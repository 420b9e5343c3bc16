"""What cpp/nanoloom.hpp knows a model by: a structure at the end of its C header."""

from __future__ import annotations

from nanoloom.binary.table import ProgramTable

EVERY = (
    "create",
    "create_on",
    "pool",
    "limit",
    "destroy",
    "input",
    "output",
    "explain",
)
RUN, RUN_ALLOC = ("run",), ("run_alloc", "free_outputs")
OF_SIZES = ("resize", "input_of")
OF_SESSIONS = ("length", "rewind", "reserve")


def functions(table: ProgramTable, name: str) -> str:
    """`struct nanoloom_NAME_functions`, C++11 and newer."""
    chosen = len(table.sizes.chosen) if table.sizes else 0
    names: list[str] = [*EVERY, *(RUN_ALLOC if table.rooms else RUN)]
    names += OF_SIZES if chosen else ()
    if table.sizes or table.numbers:
        names.append("output_of")
    names += OF_SESSIONS if table.kept else ()
    numbers = {
        "int inputs": len(table.given),
        "int outputs": len(table.made),
        "int sizes": chosen,
        "bool has_output_of": str("output_of" in names).lower(),
        "bool is_counted": str(bool(table.numbers and not table.rooms)).lower(),
    }
    lines = [f"static constexpr {kind} = {each};" for kind, each in numbers.items()]
    lines += [f"static constexpr auto {x} = nanoloom_{name}_{x};" for x in names]
    body = "\n".join(f"    {line}" for line in lines)
    return (
        "/* What nanoloom.hpp knows the model by. */\n"
        f"struct nanoloom_{name}_functions {{\n"
        f"    using handle = struct nanoloom_{name};\n{body}\n}};"
    )
