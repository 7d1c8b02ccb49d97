"""From the settings to the endpoint and the model that are used.

May not know: keys, HTTP. Invariant: a model that the endpoint does not list is taken as it is, its sizes unknown.
"""

from dataclasses import replace

from acp_bridge.settings import Settings
from agent_loop.llm.openai_compat.models import DEEPSEEK, ModelProfile, ProviderProfile


def provider_of(settings: Settings) -> tuple[ProviderProfile, ModelProfile]:
    """The chosen endpoint and model; a model that the endpoint does not list is taken as it is."""
    row = settings.config.providers.get(settings.provider)
    listed = tuple(
        ModelProfile(
            entry.id,
            context_window=entry.context,
            max_output=entry.max_output,
            images=entry.images,
            reasoning=entry.reasoning,
            merge_users=entry.merge_users,
        )
        for entry in (row.models if row else ())
    )
    if settings.provider == DEEPSEEK.name:
        provider = replace(
            DEEPSEEK, base_url=settings.deepseek_url or DEEPSEEK.base_url, models=listed or DEEPSEEK.models
        )
    else:
        provider = ProviderProfile(settings.provider, str(row and row.base_url), row and row.key_variable, listed)
    model = provider.model(settings.model) if settings.model else provider.models[0]
    if model is None:
        model = replace(provider.models[0], id=settings.model or "", context_window=None, max_output=None)
        provider = replace(provider, models=(*provider.models, model))
    return provider, model
