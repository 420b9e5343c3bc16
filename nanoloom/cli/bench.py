EXAMPLE = "x"


def bench() -> int:
    return 0
