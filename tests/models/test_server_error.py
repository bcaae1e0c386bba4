"""What servers say of a request that is too long for them, and what they say for other reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalharness.models.server_error import ServerError


def said(status: int, body: Any) -> ServerError:
    return ServerError.of(status, body if isinstance(body, bytes) else json.dumps(body).encode())


def openai(message: str, **more: Any) -> dict[str, Any]:
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}
    }


FULL: dict[str, tuple[int, Any]] = {
    "OpenAI": (
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens (8000 in the "
            "messages, 501 in the functions, and 500 in the completion). Please reduce the length of the messages, "
            "functions, or completion."
        ),
    ),
    "OpenAI, by its code": (400, openai("No.", code="context_length_exceeded")),
    "OpenAI, responses": (
        400,
        openai("Your input exceeds the context window of this model. Please adjust your input and try again."),
    ),
    "OpenAI, one message": (
        400,
        openai(
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length 9000, but got a "
            "string with length 9001 instead.",
            code="string_above_max_length",
        ),
    ),
    "OpenAI, tokens of a minute": (
        429,
        openai(
            "Request too large for m in organization o on tokens per min (TPM): Limit 8000, Requested 9001.",
            type="tokens",
            code="rate_limit_exceeded",
        ),
    ),
    "Azure": (413, openai("Request body too large for m model. Max size: 8000 tokens.", code="tokens_limit_reached")),
    "vLLM, messages": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 8192 tokens. However, your request has 9001 input "
            "tokens. Please reduce the length of the input messages. (parameter=input_tokens, value=9001)",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "vLLM, max_tokens": (
        400,
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 256. This model's maximum context length is 8192 "
            "tokens and your request has 8100 input tokens (256 > 8192 - 8100)."
        ),
    ),
    "vLLM, budget": (400, openai("max_tokens must be at least 1, got -3.", type="BadRequestError", code=400)),
    "vLLM, prompt": (
        400,
        openai(
            "The decoder prompt (length 9001) is longer than the maximum model length of 8192. Make sure that "
            "`max_model_len` is no smaller than the number of text tokens."
        ),
    ),
    "SGLang": (400, {"object": "error", "message": "The input (9001 tokens) is longer than the model's context length "
        "(8192 tokens).", "code": 400}),
    "SGLang, total": (400, {"message": "Requested token count exceeds the model's maximum context length of 8192 "
        "tokens. You requested a total of 9001 tokens: 8800 tokens from the input messages and 201 tokens for the "
        "completion."}),
    "TGI": (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 9000 "
        "`inputs` tokens and 256 `max_new_tokens`", "error_type": "validation"}),
    "TGI, inputs": (422, {"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 9001",
        "error_type": "validation"}),
    "llama.cpp": (400, {"error": {"code": 400, "message": "request (9001 tokens) exceeds the available context size "
        "(8192 tokens), try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9001}}),
    "llama.cpp, 500": (500, openai("Context size has been exceeded.", type="server_error", code=500)),
    "llama.cpp, cache": (500, openai("input is too large to process. increase the physical batch size")),
    "llama-cpp-python": (400, openai("Requested tokens (9001) exceed context window of 8192")),
    "Ollama": (500, {"error": "prompt too long; exceeded max context length by 809 tokens"}),
    "Ollama, input": (400, openai("the input length exceeds the context length")),
    "LM Studio": (400, {"error": "Trying to keep the first 9001 tokens when context the overflows. However, the model "
        "is loaded with context length of only 8192 tokens, which is not enough."}),
    "LM Studio, chat": (400, {"error": "The number of tokens to keep from the initial prompt is greater than the "
        "context length. Try to load the model with a larger context length"}),
    "LMDeploy": (400, {"message": "input_ids length 9001 exceeds session_len 8192", "type": "invalid_request_error"}),
    "TensorRT-LLM": (400, {"object": "error", "message": "The sum of prompt length (9001.0), query length (0) should "
        "not exceed max_num_tokens (8192)", "type": "BadRequestError"}),
    "TensorRT-LLM, engine": (500, openai("Prompt length (9001) exceeds maximum input length (8192). Set log level to "
        "info and check TRTGptModel logs")),
    "TensorRT-LLM, budget": (400, openai("default_max_tokens (-3) must be greater than 0, default_max_tokens (-3) = "
        "max_seq_len (8192) - splited_prompt_len (8195)")),
    "TabbyAPI": (400, {"detail": "Prompt length 9001 is greater than max_seq_len 8192"}),
    "MLC": (400, openai("Request prompt has 9001 tokens in total, larger than the model input length limit 8192.")),
    "Anthropic": (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: "
        "9001 tokens > 9000 maximum"}}),
    "Anthropic, both": (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "input length and "
        "`max_tokens` exceed context limit: 8900 + 256 > 9000, decrease input length or `max_tokens` and try again"}}),
    "Anthropic, bytes": (413, {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the "
        "maximum size"}}),
    "Gemini": (400, [{"error": {"code": 400, "message": "The input token count (9001) exceeds the maximum number of "
        "tokens allowed (9000).", "status": "INVALID_ARGUMENT"}}]),
    "Vertex": (400, [{"error": {"code": 400, "message": "Unable to submit request because the input token count is "
        "9001 but model only supports up to 8192."}}]),
    "Bedrock": (400, {"message": "Input is too long for requested model."}),
    "Bedrock, Cohere": (400, {"message": "Malformed input request: expected maxLength: 8192, actual: 9001"}),
    "Bedrock, Llama": (400, {"__type": "ValidationException", "message": "This model's maximum context length is 8192 "
        "tokens. Please reduce the length of the prompt"}),
    "Groq": (400, openai("Please reduce the length of the messages or completion.", code="context_length_exceeded")),
    "Groq, 413": (413, openai("Request too large for model `m` in organization `o` on tokens per minute (TPM): Limit "
        "6000, Requested 9001", type="tokens", code="rate_limit_exceeded")),
    "Together": (422, openai("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: "
        "9001 `inputs` tokens and 256 `max_new_tokens`")),
    "Together, newer": (400, openai("The input (9001 tokens) is longer than the model's context length (8193 "
        "tokens).")),
    "Fireworks": (400, {"error": {"object": "error", "type": "invalid_request_error", "message": "The prompt is too "
        "long: 9001, model maximum context length: 8191"}}),
    "DeepInfra": (400, {"detail": {"error": "Requested input length 9001 exceeds maximum input length 8191"}}),
    "Mistral": (400, {"object": "error", "message": "Prompt contains 9001 tokens and 0 draft tokens, too large for "
        "model with 8192 maximum context length", "type": "invalid_request_prompt", "code": "3051"}),
    "Cohere": (400, {"message": "too many tokens: size limit exceeded by 809 tokens. Try using shorter or fewer "
        "inputs. The limit for this model is 8192 tokens."}),
    "OpenRouter": (400, openai("This endpoint's maximum context length is 8192 tokens. However, you requested about "
        "9001 tokens (8745 of text input, 256 in the output).", code=400)),
    "OpenRouter, another's words": (400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {
        "raw": json.dumps(openai("Input length 9001 exceeds the maximum allowed input length of 8192 tokens.")),
        "provider_name": "P"}}}),
    "OpenRouter, status 200": (200, {"error": {"message": "context_length_exceeded", "code": 400}}),
    "LiteLLM": (400, openai("litellm.ContextWindowExceededError: BadRequestError: XException - no")),
    "xAI": (400, {"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is "
        "8192 but the request contains 9001 tokens."}),
    "DeepSeek": (400, openai("This model's maximum context length is 8192 tokens. However, you requested 9001 "
        "tokens.")),
    "DashScope": (400, openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 8192]",
        code="invalid_parameter_error")),
    "Moonshot": (400, openai("Invalid request: Your request exceeded model token limit: 8192")),
    "MiniMax": (400, openai("invalid params, context window exceeds limit (2013)", type="bad_request_error")),
    "Zhipu": (400, {"error": {"code": "1261", "message": "Prompt 超长"}}),
    "Baidu": (400, {"error_code": 336007, "error_msg": "the max input characters is 8192"}),
    "Volcengine": (400, openai("Total tokens of image and text exceed max message tokens.", code="InvalidParameter")),
    "watsonx": (400, {"errors": [{"code": "invalid_input_argument", "message": "Invalid input argument for Model: the "
        "number of input tokens 9001 cannot exceed the total tokens limit 8192 for this model"}]}),
    "Copilot": (400, openai("prompt token count of 9001 exceeds the limit of 8192", code="model_max_prompt_tokens_"
        "exceeded")),
    "Perplexity": (400, openai("The total length of all messages is too long.")),
    "Databricks": (400, {"error_code": "BAD_REQUEST", "message": "Input tokens exceeded: 9001 > 8192"}),
    "a gateway in front": (400, {"detail": json.dumps(openai("no", code="context_length_exceeded"))}),
    "DashScope, by its code": (400, openai("Bad request", code="text_too_long")),
    "a code beside another status": (429, openai("No.", code="context_length_exceeded")),
    "Ollama's runner": (500, {"error": "an error was encountered while running the model: context limit hit - shifting "
        "is disabled"}),
    "Zhipu, in English": (500, openai("Prompt exceeds max length")),
    "KoboldCpp": (500, openai("The model's context is full")),
    "nginx": (413, b"<html><title>413 Request Entity Too Large</title></html>"),
    "a text alone": (400, b"Conversation is too long."),
}  # fmt: skip

OTHER: dict[str, tuple[int, Any]] = {
    "a schema": (400, openai("Invalid schema: field 'context' has the wrong length in a window")),
    "an unknown field": (
        400,
        openai("Unknown parameter: 'context_length_exceeded_action'.", code="unknown_parameter"),
    ),
    "a response format": (
        400,
        openai("Invalid schema for response_format 'context': 'maximum length' is not permitted"),
    ),
    "a field too long": (
        400,
        openai("Invalid field 'user': the context window name exceeds the maximum length of 64"),
    ),
    "a sampling value": (
        400,
        openai("temperature must be at most 2 for this context; unsupported parameter"),
    ),
    "a template": (400, openai("Unexpected role 'system' in the context of this template")),
    "a key": (401, openai("Incorrect API key provided; the context length exceeds it")),
    "a rate": (429, openai("Rate limit reached: 9001 tokens exceed the limit of 8000 tokens per minute")),
    "a busy server": (503, {"error": "Model is overloaded: too many requests"}),
    "a queue": (503, openai("Server queue is full, request queue length exceeded")),
    "many at once": (503, openai("Too many tokens in flight, please try again later")),
    "a slow one": (504, openai("The request took too long")),
    "a throttled one": (
        400,
        {"message": "ThrottlingException: Too many tokens, please wait before trying again."},
    ),
    "no such model": (404, openai("The model `context-size-7b` does not exist", code="model_not_found")),
    "a reply's limit": (400, openai("max_tokens is too large: 20000. This model supports at most 16384 completion "
        "tokens, whereas you provided 20000.")),
    "a reply's range": (400, openai("Range of max_tokens should be [1, 8192], more than 8192 tokens")),
    "what it repeats of the request": (
        422,
        {
            "detail": [
                {"loc": ["body"], "msg": "field required", "input": "the prompt exceeds the context window"}
            ]
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("server", FULL)
def test_a_full_context_is_known_in_every_servers_words(server: str) -> None:
    assert said(*FULL[server]).is_context_full


@pytest.mark.parametrize("what", OTHER)
def test_an_error_of_another_kind_is_not_taken_for_a_full_context(what: str) -> None:
    assert not said(*OTHER[what]).is_context_full


FILTERED: dict[str, tuple[int, Any]] = {
    "Azure": (400, openai("The response was filtered due to the prompt triggering Azure OpenAI's content management "
        "policy.", code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"})),
    "OpenAI": (400, openai("Your request was rejected as a result of our safety system.", code="moderation_blocked")),
    "DashScope": (400, openai("Input data may contain inappropriate content.", code="data_inspection_failed")),
    "DeepSeek": (400, openai("Content Exists Risk: content risk")),
    "Zhipu": (400, {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}),
    "OpenRouter": (403, {"error": {"code": 403, "message": "Input flagged", "metadata": {"reasons": ["violence"], "raw":
        "Your chosen model requires moderation and your input was flagged for violence"}}}),
    "Bedrock": (400, {"message": "The request was blocked by a guardrail."}),
    "status 200": (200, {"error": {"code": 400, "message": "x", "type": "content_policy_violation"}}),
    "status 200, its code alone": (200, {"error": {"message": "blocked", "code": "content_filter"}}),
    "status 500": (500, openai("Output blocked by content filtering policy", code="content_filter")),
    "DeepSeek, its own words": (400, openai("Content Exists Risk")),
    "xAI": (403, {"error": "Content violates usage guidelines. Failed check: SAFETY_CHECK"}),
    "Azure's shield": (446, openai("blocked by Prompt Shield", code="prompt_blocked")),
    "MiniMax": (400, openai("invalid params, input new_sensitive (1026)")),
}  # fmt: skip


@pytest.mark.parametrize("server", FILTERED)
def test_a_filter_of_contents_is_no_full_context_and_no_other_refusal(server: str) -> None:
    error = said(*FILTERED[server])
    assert (error.is_filtered, error.is_context_full, error.may_be_length) == (True, False, False)


@pytest.mark.parametrize("server", [*FULL, *OTHER])
def test_other_errors_are_not_taken_for_a_filter(server: str) -> None:
    assert not said(*(FULL | OTHER)[server]).is_filtered


@pytest.mark.parametrize(
    ("status", "message", "may_be"),
    [
        (400, "Please send less.", True),
        (400, "", True),
        (422, "Bad request", True),
        (403, "Blocked by the firewall", True),
        (400, "Invalid schema: field 'context' has the wrong length in a window", False),
        (402, "Pay first", False),
        (500, "boom", False),
    ],
)
def test_a_refusal_without_known_words_may_be_for_length_unless_it_says_otherwise(
    status: int, message: str, may_be: bool
) -> None:
    error = said(status, openai(message) if message else b"")
    assert (error.is_context_full, error.may_be_length) == (False, may_be)


def test_an_error_with_status_200_has_the_status_that_it_names() -> None:
    error = said(200, {"error": {"message": "Insufficient credits. " * 10, "code": 402}})
    assert (error.status, error.message) == (402, ("Insufficient credits. " * 10).strip())
    assert said(200, {"error": "x"}).status == 500
