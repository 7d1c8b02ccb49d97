"""What is known about providers and their models (contract llm.md §5).

May not know: HTTP, requests. Invariant: rows are data; a provider of the config and the built-in one have one shape.
"""

from dataclasses import dataclass

from agent_loop.llm.history import ReasoningPolicy


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """One model. `context_window` and `max_output` in tokens (None: not known).

    `merge_users`: the provider refuses two user messages in a row. `efforts`: the values of `reasoning_effort` that it
    takes, `default_effort` the one that it takes by itself. `thinking_switch`: the endpoint takes
    `thinking: {type: enabled|disabled}`.
    """

    id: str
    context_window: int | None = None
    max_output: int | None = None
    images: bool = False
    reasoning: ReasoningPolicy = "none"
    merge_users: bool = False
    efforts: tuple[str, ...] = ()
    default_effort: str | None = None
    thinking_switch: bool = False


@dataclass(frozen=True, slots=True)
class ProviderProfile:
    """One endpoint. `key_variable` names the environment variable of its key (None: it needs no key).

    The first of `models` is the default one.
    """

    name: str
    base_url: str
    key_variable: str | None
    models: tuple[ModelProfile, ...]

    def model(self, model_id: str) -> ModelProfile | None:
        """The row of `model_id`; None when this provider does not list it."""
        return next((model for model in self.models if model.id == model_id), None)


def _deepseek_v4(model_id: str) -> ModelProfile:
    # "low" and "medium" would be taken as "high", "xhigh" as "max" (the provider's guide to thinking mode)
    return ModelProfile(
        model_id,
        context_window=1_000_000,
        max_output=384_000,
        reasoning="echo",
        efforts=("high", "max"),
        default_effort="high",
        thinking_switch=True,
    )


DEEPSEEK = ProviderProfile(
    name="deepseek",
    base_url="https://api.deepseek.com",
    key_variable="DEEPSEEK_API_KEY",
    models=(_deepseek_v4("deepseek-v4-flash"), _deepseek_v4("deepseek-v4-pro")),
)
"""The built-in provider; `DEEPSEEK_BASE_URL` or the config may replace its base URL."""
