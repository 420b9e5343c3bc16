EXAMPLE = "x"


def demo() -> int:
    return 0
