"""The bus."""

from typing import Any

from agent_loop.hooks import Hooks, Scope


def make() -> tuple[Hooks, list[tuple[str, str]]]:
    errors: list[tuple[str, str]] = []
    return Hooks(lambda name, error: errors.append((name, str(error)))), errors


def test_listeners_hear_in_order_of_registration():
    hooks, _ = make()
    heard: list[Any] = []
    hooks.on("x", lambda value: heard.append(("a", value)))
    hooks.on("x", lambda value: heard.append(("b", value)))
    hooks.emit("x", 1)
    hooks.emit("y", 2)
    assert heard == [("a", 1), ("b", 1)]


def test_a_raising_listener_harms_nobody():
    hooks, errors = make()
    heard: list[int] = []

    def broken(_value: int) -> None:
        raise ValueError("no")

    hooks.on("x", broken)
    hooks.on("x", heard.append)
    hooks.emit("x", 1)
    assert heard == [1]
    assert errors == [("x", "no")]


async def test_parallel_awaits_all_and_returns_what_they_say():
    hooks, errors = make()

    async def good(value: int) -> int:
        return value + 1

    async def bad(_value: int) -> int:
        raise ValueError("no")

    hooks.on("x", bad)
    hooks.on("x", good)
    hooks.on("x", good, agent="other")
    refused, answer = await hooks.parallel("x", 1, agent="mine")
    assert str(refused) == "no"
    assert answer == 2
    assert errors == [("x", "no")]
    assert await hooks.parallel("silence") == []


def test_an_agent_scoped_listener_hears_only_its_agent():
    hooks, _ = make()
    heard: list[str] = []
    hooks.on("x", heard.append, agent="a")
    hooks.emit("x", "to a", agent="a")
    hooks.emit("x", "to b", agent="b")
    hooks.emit("x", "to nobody")
    assert heard == ["to a"]


def test_those_of_an_agent_and_those_of_all_are_called_in_one_order_whoever_comes_or_goes_meanwhile():
    hooks, _ = make()
    heard: list[str] = []

    def first(_value: object) -> None:
        heard.append("first")
        leave()
        hooks.on("x", lambda _value: heard.append("late"), agent="a")

    hooks.on("x", first, agent="a")
    hooks.on("x", lambda _value: heard.append("second"))
    leave = hooks.on("x", lambda _value: heard.append("third"), agent="a")
    hooks.emit("x", 1, agent="a")
    assert heard == ["first", "second", "third"]
    heard.clear()
    hooks.emit("x", 2, agent="a")
    assert heard == ["first", "second", "late"]


def test_listening_says_whether_somebody_hears():
    hooks, _ = make()
    assert not hooks.listening("x")
    remove = hooks.on("x", print)
    assert hooks.listening("x")
    remove()
    assert not hooks.listening("x")


def test_removing_twice_spares_an_equal_registration():
    hooks, _ = make()
    heard: list[int] = []
    remove = hooks.on("x", heard.append)
    hooks.on("x", heard.append)
    remove()
    remove()
    hooks.emit("x", 1)
    assert heard == [1]


def test_a_removed_neighbour_is_passed_over():
    hooks, _ = make()
    heard: list[int] = []
    hooks.on("x", heard.append)
    remove = hooks.on("x", heard.append)
    remove()
    hooks.emit("x", 1)
    assert heard == [1]


def test_a_scope_takes_its_registrations_along():
    hooks, _ = make()
    scope = Scope()
    heard: list[int] = []
    hooks.on("x", heard.append, scope=scope)
    hooks.wrap("y", lambda value, _next: -value, scope=scope)
    scope.dispose()
    scope.dispose()
    hooks.emit("x", 1)
    assert heard == []
    assert hooks.around("y", lambda value: value)(3) == 3


def test_layers_wrap_from_the_outside_in():
    hooks, _ = make()
    hooks.wrap("x", lambda value, inner: f"outer({inner(value)})")
    hooks.wrap("x", lambda value, inner: f"inner({inner(value)})")
    hooks.wrap("x", lambda value, inner: "other", agent="other")
    assert hooks.around("x", lambda value: value, agent="mine")("v") == "outer(inner(v))"
    assert (hooks.wrapped("x", agent="mine"), hooks.wrapped("y", agent="mine")) == (True, False)


def test_a_layer_may_skip_the_rest():
    hooks, _ = make()
    hooks.wrap("x", lambda value, _inner: value)

    def never(_value: object) -> None:
        raise AssertionError

    assert hooks.around("x", never)("v") == "v"
