"""A keyring in memory, which may be told to fail."""

from acp_bridge.credential_store import Keyring, KeyringFailure


class DictKeyring(Keyring):
    """`broken`: the operations that fail; `forgetful`: takes everything and keeps nothing. `asked` counts `find`s."""

    def __init__(self, *broken, forgetful=False):
        self.keys = {}
        self.broken = set(broken)
        self.asked = 0
        self._forgetful = forgetful

    async def save(self, provider, key):
        self._work("save")
        if not self._forgetful:
            self.keys[provider] = key

    async def find(self, provider):
        self.asked += 1
        self._work("find")
        return self.keys.get(provider)

    async def forget(self, provider):
        self._work("forget")
        self.keys.pop(provider, None)

    def _work(self, operation):
        if operation in self.broken:
            raise KeyringFailure("it is locked")
