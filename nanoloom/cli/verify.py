EXAMPLE = "x"


def verify() -> int:
    return 0
