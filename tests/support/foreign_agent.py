"""The stub agent, with a model: a prompt `model X` asks OPENAI_BASE_URL and says what it answers. Standard library
only.

It knows nothing of recordings: for the harness it is a foreign agent. `model X` sends the working directory along.
"""

import http.client
import json
import os
from urllib.parse import urlsplit

import stub_agent


def ask_model(session, text):
    url = urlsplit(os.environ["OPENAI_BASE_URL"] + "/chat/completions")
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": f"{text} in {os.getcwd()}"}]}
    head = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    connection = http.client.HTTPConnection(url.netloc)
    connection.request("POST", url.path, json.dumps(body), head)
    response = connection.getresponse()
    lines = response.read().decode().split("\n")
    if response.status != 200:
        raise RuntimeError(f"the model answered {response.status}")
    for line in lines:
        if line.startswith("data: {"):
            for choice in json.loads(line[6:])["choices"]:
                if said := choice["delta"].get("content"):
                    stub_agent.say(session, said)


def prompt(session, text):
    word, _, rest = text.partition(" ")
    if word != "model":
        return stub_prompt(session, text)
    ask_model(session, rest)
    return "end_turn"


stub_prompt = stub_agent.prompt
stub_agent.prompt = prompt

if __name__ == "__main__":
    stub_agent.main()
