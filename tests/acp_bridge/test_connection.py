"""initialize and authenticate, through the wire."""

import pytest

from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import says


async def test_initialize_names_the_agent_and_exactly_what_it_can(tmp_path):
    async with bridge_world(cwd=tmp_path, initialized=False) as world:
        result = await world.call("initialize", protocolVersion=1)
    assert result["protocolVersion"] == 1
    assert result["agentInfo"]["name"] == "dsh-acp-agent"
    assert result["agentCapabilities"]["loadSession"] is True
    assert result["agentCapabilities"]["sessionCapabilities"] == {
        name: {} for name in ("list", "resume", "close", "delete", "additionalDirectories")
    }
    assert result["agentCapabilities"]["promptCapabilities"] == {
        "image": False,
        "audio": False,
        "embeddedContext": True,
    }
    assert [method["id"] for method in result["authMethods"]] == ["api-key"]
    assert "TEST_KEY" in result["authMethods"][0]["description"]


async def test_images_are_offered_where_a_model_takes_them(tmp_path):
    async with bridge_world(cwd=tmp_path, initialized=False, images=True) as world:
        result = await world.call("initialize", protocolVersion=1)
    assert result["agentCapabilities"]["promptCapabilities"]["image"] is True


@pytest.mark.parametrize("version", [0, 1, 2, 65535, 1.0, "1", "2024-11-05"])
async def test_any_version_is_answered_with_1(tmp_path, version):
    async with bridge_world(cwd=tmp_path, initialized=False) as world:
        assert (await world.call("initialize", protocolVersion=version))["protocolVersion"] == 1


@pytest.mark.parametrize("params", [{}, *({"protocolVersion": value} for value in (None, True, [1], {"v": 1}, 1.5))])
async def test_a_version_that_is_none_is_refused(tmp_path, params):
    async with bridge_world(cwd=tmp_path, initialized=False) as world:
        error = await world.error("initialize", **params)
    assert error["code"] == -32602
    assert "protocolVersion" in error["message"]


async def test_before_initialize_requests_are_refused_and_notifications_ignored(tmp_path):
    async with bridge_world(cwd=tmp_path, initialized=False) as world:
        error = await world.error("session/new", cwd=str(tmp_path))
        await world.notify("session/cancel", sessionId="x")
        await world.call("initialize", protocolVersion=1)
    assert error["code"] == -32600
    assert "Not initialized" in error["message"]


async def test_a_second_initialize_holds_for_sessions_opened_afterwards(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        first = await world.new_session()
        await world.call("initialize", protocolVersion=1, clientCapabilities={"_meta": {"terminal_output": True}})
        second = await world.new_session()
        shows = [world.bridge.present(session).capabilities.terminal_output for session in (first, second)]
    assert shows == [False, True]


async def test_unknown_methods_are_not_found_and_unknown_notifications_ignored(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        codes = [(await world.error(method))["code"] for method in ("nope/nope", "_vendor/x")]
        await world.notify("foo/bar")
        await world.notify("session/cancel")
        assert codes == [-32601, -32601]


async def test_authenticate_succeeds_when_a_key_exists(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        assert await world.call("authenticate", methodId="api-key") == {}


async def test_authenticate_without_a_key_says_what_to_set(tmp_path):
    async with bridge_world(cwd=tmp_path, key=None) as world:
        error = await world.error("authenticate", methodId="api-key")
    assert error["code"] == -32000
    assert "TEST_KEY" in error["message"]


async def test_an_unknown_auth_method_is_refused_and_so_is_one_that_is_run_in_a_terminal(tmp_path):
    async with bridge_world(cwd=tmp_path, capabilities={"auth": {"terminal": True}}) as world:
        unknown, terminal = [await world.error("authenticate", methodId=method) for method in ("nope", "login")]
    assert (unknown["code"], terminal["code"]) == (-32602, -32602)
    assert "is unknown; use 'api-key'" in unknown["message"]
    assert "is run in a terminal; use 'api-key'" in terminal["message"]


async def test_after_a_logout_a_prompt_needs_a_key_until_the_client_authenticates(tmp_path):
    async with bridge_world(says("hello"), cwd=tmp_path, capabilities={"auth": {"terminal": True}}) as world:
        session = await world.new_session()
        assert await world.call("logout") == {}
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}
        refused = await world.error("session/prompt", **prompt)
        assert (refused["code"], refused["data"]["methods"]) == (-32000, ["api-key", "login"])
        assert "you have signed out" in refused["message"]
        assert await world.call("authenticate", methodId="api-key") == {}
        assert (await world.prompt(session))["stopReason"] == "end_turn"


async def test_a_key_that_is_stored_meanwhile_serves_the_next_prompt_and_a_logout_removes_it(tmp_path):
    async with bridge_world(says("hello"), cwd=tmp_path, key=None) as world:
        session = await world.new_session()
        store = world.connection.authority.store
        await store.save("test", "k-0123456789")
        assert (await world.prompt(session))["stopReason"] == "end_turn"
        assert await world.call("logout") == {}
        assert store.entries() == {}
        assert (await world.error("authenticate", methodId="api-key"))["code"] == -32000


async def test_a_logout_that_cannot_remove_a_key_says_so(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        (tmp_path / ".keys").mkdir()
        (tmp_path / ".keys" / "credentials.json").write_text("damaged")
        error = await world.error("logout")
    assert error["code"] == -32603
    assert error["data"]["reason"] == "credentials"
    assert "is damaged" in error["message"]


async def test_params_that_do_not_fit_are_named(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        error = await world.error("authenticate", methodId=5)
    assert error["code"] == -32602
    assert "methodId" in error["message"]


async def test_a_broken_configuration_is_met_at_the_first_session(tmp_path):
    async with bridge_world(cwd=tmp_path, problem="config.toml: line 3") as world:
        error = await world.error("session/new", cwd=str(tmp_path))
    assert error["code"] == -32603
    assert "config.toml" in error["message"]
    assert error["data"]["reason"] == "config"


async def test_the_clock_of_a_replay_can_be_moved_and_a_real_one_cannot(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        assert (await world.error("_dsh/clock/advance", ms=5))["code"] == -32601
        before = world.agents.runtime.now_ms()
        world.connection.advance = world.agents.runtime.advance
        assert await world.call("_dsh/clock/advance", ms=5) == {}
        assert world.agents.runtime.now_ms() == before + 5
        assert (await world.error("_dsh/clock/advance", ms=-1))["code"] == -32602
