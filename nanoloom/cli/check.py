EXAMPLE = "x"


def check() -> int:
    return 0
