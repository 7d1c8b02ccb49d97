"""The fixtures of the plugin, used by tests inside tests."""

import pytest

from acp_bridge.testing.conformance import lab  # noqa: F401 - once for all
from tests.support.scenario_folder import FOREIGN, PLAIN, scenario_folder
from tests.support.stub_scenario import STUB, prompt

pytest_plugins = ["pytester"]


@pytest.fixture
def check(pytester):
    """Runs the source of a test module; every test in it must pass."""

    def run(source, *arguments, **outcomes):
        pytester.makepyfile(source)
        result = pytester.runpytest_inprocess(*PLAIN, *arguments)
        result.assert_outcomes(**(outcomes or {"passed": 1}))
        return result

    return run


def test_a_client_talks_to_the_agent_of_the_option(check):
    check(
        """
        def test_it(acp_client):
            agent = acp_client(permission=[{"kind": "allow_once"}, {"error": True}, {"never": True}])
            session = agent.new_session()
            assert agent.prompt(session, "ask")["result"]["stopReason"] == "end_turn"
            agent.prompt(session, "ask")
            asked = agent.send_prompt(session, "ask")
            agent.wait_request("session/request_permission", since=len(agent.entries) - 1)
            said = [update["content"]["text"] for update in agent.updates(session, "agent_message_chunk")]
            assert '"optionId": "allow_once"' in said[0]
            assert "refused" in said[1]
            assert len(said) == 2
        """,
        "--acp-agent",
        " ".join(STUB),
    )


def test_clients_of_one_test_share_the_scripted_model_and_the_directory(check):
    check(
        f"""
        def test_it(acp_client):
            acp_client.model.script({{"text": ["one"]}}, {{"text": ["two"]}})
            first, second = acp_client({FOREIGN!r}), acp_client({FOREIGN!r}, initialize=False, env={{"A": "b"}})
            for agent in (first, second):
                agent.prompt(agent.new_session(), "model hi")
            said = [agent.updates(kind="agent_message_chunk")[0]["content"]["text"] for agent in (first, second)]
            assert said == ["one", "two"]
            assert str(acp_client.cwd) in acp_client.model.requests[0].body["messages"][0]["content"]
        """
    )


def test_a_client_without_a_command_says_what_it_needs(check):
    check(
        """
        import pytest

        def test_it(acp_client):
            with pytest.raises(ValueError, match="give --acp-agent, or call acp_client with a command"):
                acp_client()
        """
    )


def test_a_scenario_is_played_by_name(check, pytester):
    scenario_folder(pytester.path / "snapshots", one=[prompt("say hi")], two=[])
    check(
        """
        import pytest
        from pathlib import Path
        from acp_bridge.testing.scenario import ScenarioError

        def test_it(acp_scenario):
            assert acp_scenario("one").transcript[-1]["result"] == {"stopReason": "end_turn"}
            with pytest.raises(ScenarioError, match="declares no three"):
                acp_scenario("three")
        """,
        "--acp-scenarios",
        "snapshots",
        "test_a_scenario_is_played_by_name.py",
        "-k",
        "test_it",
    )


def test_a_scenario_of_another_folder_is_played_with_another_agent(check, pytester):
    scenario_folder(pytester.path / "others", one=[prompt("say hi")])
    check(
        """
        import pytest
        from pathlib import Path

        def test_it(acp_scenario):
            run = acp_scenario("one", root=Path("others"), env={"STUB_EXIT": "3"})
            assert run.failures == ["the agent exited with 3"]
            with pytest.raises(ValueError, match="give --acp-scenarios, or call acp_scenario with a root"):
                acp_scenario("one")
        """,
        "--acp-agent",
        " ".join(STUB),
    )
