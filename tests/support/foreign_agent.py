"""The stub agent, with a model: a prompt `model X` asks OPENAI_BASE_URL and says what it answers, `endless X` says it
as it comes and hangs up at the cancel. Standard library only.

It knows nothing of recordings: for the harness it is a foreign agent. It sends the working directory along.
"""

import contextlib
import http.client
import json
import os
import socket
import threading
from urllib.parse import urlsplit

import stub_agent


def ask_model(session, text, listen):
    url = urlsplit(os.environ["OPENAI_BASE_URL"] + "/chat/completions")
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": f"{text} in {os.getcwd()}"}]}
    head = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    connection = http.client.HTTPConnection(url.netloc)
    connection.request("POST", url.path, json.dumps(body), head)
    upstream = connection.sock
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"the model answered {response.status}")
    for line in listen(response, upstream):
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:])["choices"]:
                if said := choice["delta"].get("content"):
                    stub_agent.say(session, said)


def whole(response, _upstream):
    return response.read().split(b"\n")


def until_cancelled(response, upstream):
    def hang_up():
        stub_agent.wait_for_cancel()
        upstream.shutdown(socket.SHUT_RDWR)

    watcher = threading.Thread(target=hang_up)
    watcher.start()
    with contextlib.suppress(http.client.IncompleteRead):
        yield from response
    watcher.join()
    response.close()


def prompt(session, text):
    word, _, rest = text.partition(" ")
    if word == "endless":
        ask_model(session, rest, until_cancelled)
        return "cancelled"
    if word != "model":
        return stub_prompt(session, text)
    ask_model(session, rest, whole)
    return "end_turn"


stub_prompt = stub_agent.prompt
stub_agent.prompt = prompt

if __name__ == "__main__":
    stub_agent.main()
