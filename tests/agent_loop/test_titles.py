"""Sessions name themselves."""

from agent_loop.agent import InboxMessage
from agent_loop.titles import install_titles
from agent_loop.vocabulary import text_block
from tests.support.agent_world import OPTIONS, PLUGIN, USER, agent_world
from tests.support.scripted_adapter import says


async def test_the_first_prompt_gives_the_title_and_no_later_one_changes_it():
    async with agent_world(fallback=says("ok")) as world:
        install_titles(world.hooks)
        agent = world.agent()
        await world.prompt(agent, "  fix the build\nplease")
        await world.prompt(agent, "and the tests")
        assert world.of(agent, "session/title") == [{"title": "fix the build", "by": "prompt"}]
        assert agent.session.title == "fix the build"
        assert world.types(agent)[:4] == ["turn/start", "user/message", "session/title", "step/start"]


async def test_a_prompt_without_words_leaves_the_title_to_the_next_one():
    async with agent_world(fallback=says("ok")) as world:
        install_titles(world.hooks)
        agent = world.agent()
        link = {"type": "resource-link", "uri": "file:///a", "name": "a"}
        agent.followup(InboxMessage("m", [link], USER))
        await agent.when_idle()
        assert agent.session.title is None
        await world.prompt(agent, "explain it")
        assert agent.session.title == "explain it"


async def test_what_a_plugin_sends_gives_no_title():
    async with agent_world(fallback=says("ok")) as world:
        install_titles(world.hooks)
        agent = world.agent()
        agent.followup(InboxMessage("m", [text_block("check the build")], PLUGIN))
        await agent.when_idle()
        assert agent.session.title is None


async def test_a_title_that_a_person_gave_before_the_first_prompt_stays():
    async with agent_world(fallback=says("ok")) as world:
        install_titles(world.hooks)
        agent = world.agent()
        agent.session.append("session/title", {"title": "mine", "by": "user"})
        await world.prompt(agent, "fix the build")
        assert agent.session.title == "mine"


async def test_the_title_of_a_stored_session_is_known_again_and_stays():
    async with agent_world(fallback=says("ok")) as world:
        install_titles(world.hooks)
        agent = world.agent()
        await world.prompt(agent, "fix the build")
        await agent.dispose()
        again = await world.registry.resume(OPTIONS, session_id=agent.id, cwd="/project")
        assert again.session.title == "fix the build"
        await world.prompt(again, "something else")
        assert again.session.title == "fix the build"


async def test_removed_it_names_no_session_any_more():
    async with agent_world(says("ok")) as world:
        install_titles(world.hooks)()
        agent = world.agent()
        await world.prompt(agent, "fix the build")
        assert agent.session.title is None
