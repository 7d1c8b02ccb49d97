"""From the settings to the endpoints and models that are used.

May not know: keys' values, HTTP, the wire. Invariant: one adapter for each provider, which serves exactly the models of
the catalogue that are its; a model that the chosen endpoint does not list is taken as it is, its sizes unknown.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from acp_bridge.catalogue import Catalogue, Choice, ModelRow, Offer, Price, levels_of
from acp_bridge.config_file import DEEPSEEK_KEY
from acp_bridge.permission.modes import MODES
from acp_bridge.settings import ModelSettings, ProviderSettings, Settings
from agent_loop.llm.openai_compat.adapter import OpenAICompatAdapter
from agent_loop.llm.openai_compat.models import DEEPSEEK, ModelProfile, ProviderProfile
from agent_loop.llm.service import LlmService
from agent_loop.runtime import Runtime

FindKey = Callable[[], Awaitable[str | None]]
"""The key of a provider, looked up anew each time."""
# settings of a model → fields of its profile
_OF_A_PROFILE: Final = {"context": "context_window"} | {
    name: name
    for name in ("max_output", "images", "reasoning", "merge_users", "efforts", "default_effort", "thinking_switch")
}


def register_adapters(
    profiles: Iterable[ProviderProfile], *, llm: LlmService, runtime: Runtime, credential: Callable[[str], FindKey]
) -> dict[str, OpenAICompatAdapter]:
    """An adapter for each provider, by its name; `credential(provider)` finds its key."""
    adapters: dict[str, OpenAICompatAdapter] = {}
    for profile in profiles:
        adapter = OpenAICompatAdapter(profile, credential=credential(profile.name), runtime=runtime)
        llm.register_adapter([model.id for model in profile.models], adapter, provider=profile.name)
        adapters[profile.name] = adapter
    return adapters


def providers_of(settings: Settings, environment: Mapping[str, str]) -> tuple[ProviderProfile, ...]:
    """Every endpoint of the configuration; DeepSeek where it is chosen, configured, or has its key."""
    wanted = {settings.provider, *settings.config.providers}
    if environment.get(DEEPSEEK_KEY, "").strip():
        wanted.add(DEEPSEEK.name)
    return tuple(profile for profile in all_providers(settings) if profile.name in wanted)


def all_providers(settings: Settings) -> tuple[ProviderProfile, ...]:
    """Every endpoint that there is, the built-in one first."""
    rows = {DEEPSEEK.name: ProviderSettings()} | settings.config.providers
    return tuple(_profile(settings, name, row) for name, row in rows.items())


def offer_of(settings: Settings, profiles: Iterable[ProviderProfile]) -> Offer:
    """What a session can choose from, and what it starts with."""
    listed = {(name, model.id): model for name, row in settings.config.providers.items() for model in row.models}
    rows = tuple(
        _row(profile, model, listed.get((profile.name, model.id))) for profile in profiles for model in profile.models
    )
    own = [row for row in rows if row.provider == settings.provider]
    model = next((row for row in own if row.id == settings.model), own[0])
    default = Choice(settings.permission_mode, model.value, settings.config.thinking)
    return Offer(MODES, Catalogue(rows), default)


def _profile(settings: Settings, name: str, row: ProviderSettings) -> ProviderProfile:
    if name == DEEPSEEK.name:
        models = tuple(_model(entry, DEEPSEEK.model(entry.id)) for entry in row.models) or DEEPSEEK.models
        provider = replace(DEEPSEEK, base_url=settings.deepseek_url or DEEPSEEK.base_url, models=models)
    else:
        provider = ProviderProfile(name, str(row.base_url), row.key_variable, tuple(map(_model, row.models)))
    if name != settings.provider or settings.model is None or provider.model(settings.model):
        return provider
    unlisted = replace(provider.models[0], id=settings.model, context_window=None, max_output=None)
    return replace(provider, models=(*provider.models, unlisted))


def _model(entry: ModelSettings, known: ModelProfile | None = None) -> ModelProfile:
    """What the entry says, over what is known of such a model."""
    said = entry.model_dump(exclude_unset=True)
    stated = {field: said[setting] for setting, field in _OF_A_PROFILE.items() if setting in said}
    return replace(known or ModelProfile(entry.id), **stated)


def _row(profile: ProviderProfile, model: ModelProfile, entry: ModelSettings | None) -> ModelRow:
    return ModelRow(
        profile.name,
        model.id,
        (entry and entry.name) or model.id,
        *levels_of(model.efforts, model.default_effort, switch=model.thinking_switch),
        window=model.context_window,
        images=model.images,
        price=_price(entry) if entry else None,
        reasoning=model.reasoning,
        merge_users=model.merge_users,
    )


def _price(entry: ModelSettings) -> Price | None:
    if entry.price_input is None or entry.price_output is None:
        return None
    cached = entry.price_input if entry.price_cached is None else entry.price_cached
    return Price(entry.price_input, cached, entry.price_output, entry.currency)
