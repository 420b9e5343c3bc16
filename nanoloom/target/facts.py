"""What a target is: frozen facts about a CPU, nothing that looks at a machine."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

from nanoloom.errors import Error
from nanoloom.target.instruction_set import InstructionSet
from nanoloom.target.tail_forms import FORMS, MASKED, MASKED_REMAINDER, VECTOR_LENGTH


@dataclass(frozen=True)
class VectorUnit:
    """The vector registers of a core and how fast it works on them.

    `bits` is the width of a register; of a scalable one the width per vscale, as LLVM
    counts it (128 on SVE, 64 on RVV), so that `vector<[lanes]xf32>` is one register.
    Ports are per cycle for a whole register, 0.5 meaning every other cycle;
    alu_per_cycle is arithmetic of any kind, multiply-adds included, 0 where it is as
    fma_per_cycle.  load_left: of a cycle, what is left of a load beside multiply-adds,
    as measured.  rates: of instructions, by name, that it executes at another rate
    than the table of instructions says; latencies: that wait for their sums longer or
    shorter, in cycles.  grouped: so many
    registers can be one operand, and take as many passes (LMUL of RVV).  passes: that a
    whole register takes, a part of it fewer.  in_order: a core waits where a loaded
    number is used first.  form: of loops over vectors that a schedule says nothing else
    of (tail_forms.py): `reproduce scalable` counts them beside each other.
    """

    bits: int
    registers: int
    scalable: bool = False
    _: KW_ONLY
    fma_latency: int
    fma_per_cycle: float
    load_per_cycle: float
    store_per_cycle: float
    mask_registers: int = 0
    grouped: int = 1
    in_order: bool = False
    alu_per_cycle: float = 0
    load_left: float = 0.2
    rates: tuple[tuple[str, float], ...] = ()
    latencies: tuple[tuple[str, float], ...] = ()
    passes: int = 1
    vscale_min: int = 1
    form: str = MASKED_REMAINDER
    vscale_max: int = 1  # above vscale_min: the code must run at every size between

    @property
    def min_bits(self) -> int:
        """The width that a register has at least, in bits."""
        return self.bits * self.vscale_min

    @property
    def any_length(self) -> bool:
        """Whether the same code must run with registers of several lengths."""
        return self.vscale_max > self.vscale_min

    def narrowed(self, parts: int) -> VectorUnit:
        """The unit with vectors of a part of a register, of fixed width."""
        faster = min(parts, self.passes)
        return replace(
            self,
            bits=self.bits // parts,
            passes=self.passes // faster,
            fma_per_cycle=self.fma_per_cycle * faster,
            load_per_cycle=self.load_per_cycle * faster,
            store_per_cycle=self.store_per_cycle * faster,
            alu_per_cycle=self.alu_per_cycle * faster,
            rates=tuple((name, rate * faster) for name, rate in self.rates),
        )

    @property
    def accumulators(self) -> int:
        """How many independent sums keep the FMA ports busy."""
        return max(1, round(self.fma_latency * self.fma_per_cycle))


@dataclass(frozen=True)
class MatrixUnit:
    """Tile registers of `rows` rows of `row_bytes` bytes (AMX: 8 tiles of 1 KiB).

    scalable: both are per vscale, as of SME's four tiles of f32.
    """

    kind: str = "amx"
    tiles: int = 8
    rows: int = 16
    row_bytes: int = 64
    scalable: bool = False

    @property
    def bytes(self) -> int:
        """Of a tile register."""
        return self.rows * self.row_bytes


@dataclass(frozen=True)
class Cache:
    """Bytes of the data caches as one core sees them; l3 is 0 where there is none.

    A cache that several cores share is counted whole.  line: bytes that come and go
    together.  page: bytes that are translated together; pages: so many of them a core
    translates without a wait, its first-level TLB.  l2_loads: a line from the
    second-level cache takes as long as so many loads, measured.  l3_cycles: of a line
    on its way out of that cache, or back into it, as measured on AVX-512: of the image
    behind ResNet's first layer, out and back together are 6.
    """

    l1d: int
    l2: int
    l3: int = 0
    line: int = 64
    page: int = 4096
    pages: int = 64
    l2_loads: float = 3
    l3_cycles: float = 3.0

    @property
    def resident(self) -> int:
        """Half of the second-level cache: what is larger is not found there again,
        once something else as large has gone by."""
        return self.l2 // 2

    @property
    def residents(self) -> tuple[int, ...]:
        """The same of each cache behind the first-level one."""
        return tuple(size // 2 for size in (self.l2, self.l3) if size)

    @property
    def panel(self) -> int:
        """A quarter of it: of an operand that stays while rows and results go by."""
        return self.l2 // 4

    @property
    def reach(self) -> int:
        """Bytes that are translated without a wait."""
        return self.page * self.pages


MOST_VECTORS = 8  # side by side in a register tile
# Registers of addresses: x86's, the fewest.  Each row of a tile has one, beside a stack
# pointer and a counter.  Of a tile over the edge half as many: more are spilled.
ADDRESSES = 16
# Bits of what x86 calls a lane, and Arm a register: instructions that exchange numbers
# work on so many, and no vector is shorter.
LANE_BITS = 128
WIDEST_BITS = 2048  # of a vector, at most: SVE's architecture


@dataclass(frozen=True)
class Shared:
    """How weights lie that code for several CPUs reads: as suits `leader`.

    bits: of sums, the most in a panel's row, so that all of them can read it.
    """

    leader: Target
    bits: int


@dataclass(frozen=True, repr=False)
class Target:
    """A CPU to compile for: what LLVM must be told, and what a schedule must know.

    `cpu`, `features`, `abi` and `code_model` go to LLVM's target machine as they are.
    `extensions` are names of LLVM features: those that decide between nanokernels.
    Every field is part of a cache key; `repr` prints the name alone.
    """

    name: str
    isa: InstructionSet
    triple: str
    cpu: str
    features: str
    vector: VectorUnit
    caches: Cache
    extensions: frozenset[str]
    matrix: MatrixUnit | None = None
    abi: str = ""
    code_model: str = "default"
    shared: Shared | None = None  # where weights are not its own alone

    def __post_init__(self) -> None:
        self.require_form(self.vector.form)

    def __repr__(self) -> str:
        return f"Target({self.name})"

    def __str__(self) -> str:
        return self.name

    @property
    def arch(self) -> str:
        """The instruction set's name: x86_64, aarch64, riscv64, powerpc64le."""
        return self.isa.name

    def has(self, *extensions: str) -> bool:
        """Whether all of these extensions are there."""
        return self.extensions.issuperset(extensions)

    @property
    def widens_f16(self) -> bool:
        """Whether an instruction makes f32 of f16."""
        return bool(self.isa.widens_f16 & self.extensions)

    @property
    def rounds_bf16(self) -> bool:
        """Whether an instruction makes bf16 of f32."""
        return bool(self.isa.rounds_bf16 & self.extensions)

    @property
    def leader(self) -> Target:
        """The target that decides in which order a model's tensors lie."""
        return self.shared.leader if self.shared else self

    @property
    def fuses(self) -> bool:
        """Whether an instruction multiplies and adds."""
        return not self.isa.fma or self.has(self.isa.fma)

    @property
    def writes_over(self) -> bool:
        """Whether an instruction writes its result over one of its operands."""
        apart = self.isa.result_apart
        return bool(apart) and not self.has(apart)

    @property
    def is_scalar(self) -> bool:
        """Whether it has no vectors: LLVM takes them apart."""
        return bool(self.isa.vectors) and not self.has(self.isa.vectors)

    def require_form(self, form: str) -> None:
        """Raise Error for a form of loops (tail_forms.py) that it has no instructions
        for.

        What asks a machine for lengths is none that masks stand for: code with masks is
        another form, and has a name of its own.
        """
        if form not in FORMS:
            known = ", ".join(FORMS)
            raise Error(f"the form of loops is {form!r}: {known} are known")
        if form == VECTOR_LENGTH and (self.is_scalar or not self.isa.asks_length):
            raise Error(
                f"{self} is asked for no length of vectors: that is RISC-V's vsetvli",
                hint=f"in loops of the form {MASKED!r} every round has a mask",
            )

    def lanes(self, element_bits: int) -> int:
        """Elements in one vector register; of a scalable one, elements per vscale."""
        return self.vector.bits // element_bits

    def flops_per_cycle(self, element_bits: int) -> float:
        """Floating-point operations a cycle of one core, at vscale_min (FMA = 2)."""
        lanes = self.vector.min_bits // element_bits
        return 2 * lanes * self.vector.fma_per_cycle
