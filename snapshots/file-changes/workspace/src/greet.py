PLANET = "Mars"


def greet() -> str:
    return f"Hello, {PLANET}!"
