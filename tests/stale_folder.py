"""A shared folder with a server, by the kernel's FUSE protocol: no library is needed. What is in it is in memory, or is that of another
folder. As long as a file `stale` exists, all that is asked of it fails with ESTALE, as with a file server that has taken an export back; as
long as `hangs` exists, it does not answer, as one that is away.

Usage: stale_folder.py PLACE SWITCHES [SHOWN], for the server: mounts at PLACE, looks for `stale` and `hangs` in the folder SWITCHES
"""
import errno
import os
import stat
import struct
import subprocess
import sys
import tempfile
import time

LOOKUP, FORGET, GETATTR, SETATTR, MKDIR, UNLINK, RENAME, OPEN, READ, WRITE = 1, 2, 3, 4, 9, 10, 12, 14, 15, 16
RELEASE, FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, CREATE, INTERRUPT, BATCH_FORGET, RENAME2 = 18, 20, 25, 26, 27, 28, 29, 34, 35, 36, 42, 45
NOT_ANSWERED = (FORGET, BATCH_FORGET, INTERRUPT)
LARGEST_WRITE = 1 << 16
IS_TRUNCATED = 8
IS_DIRECT = 1  # nothing of a file is in the kernel's cache


class Server:
    def __init__(self, place, switches):
        self.switches = switches
        self.nodes = {1: {}}  # a folder's names, or a file's bytes
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0"
        subprocess.run(["mount", "-i", "-t", "fuse", "-o", options, "none", place], pass_fds=[self.device], check=True)

    def is_switched(self, name):
        return os.path.exists(f"{self.switches}/{name}")

    def serve(self):
        while True:
            try:
                request = os.read(self.device, LARGEST_WRITE + 4096)
            except FileNotFoundError:  # the request was withdrawn
                continue
            except OSError:  # it was unmounted
                return
            _, operation, unique, node = struct.unpack_from("<IIQQ", request)
            if operation in NOT_ANSWERED:
                continue
            while self.is_switched("hangs"):
                time.sleep(0.02)
            try:
                if operation != INIT and self.is_switched("stale"):
                    raise OSError(errno.ESTALE, "")
                code, answer = 0, self.answer(operation, node, request[40:])
            except OSError as error:
                code, answer = error.errno, b""
            try:
                os.write(self.device, struct.pack("<IiQ", 16 + len(answer), -code, unique) + answer)
            except OSError:
                pass  # who asked is gone

    def attributes(self, node):
        content = self.nodes[node]
        mode, size = (stat.S_IFDIR | 0o777, 0) if isinstance(content, dict) else (stat.S_IFREG | 0o666, len(content))
        return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def entry(self, node):
        return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def add(self, folder, name, content):
        node = max(self.nodes) + 1
        self.nodes[node] = content
        self.nodes[folder][name] = node
        return node

    def answer(self, operation, node, data):
        names = data.rstrip(b"\0").split(b"\0")
        if operation == INIT:
            _, minor = struct.unpack_from("<II", data)
            return struct.pack("<4I2H2I2H8I", 7, min(minor, 31), 0, 0, 8, 8, LARGEST_WRITE, 1, 0, 0, *[0] * 8)
        if operation == LOOKUP:
            if names[0] not in self.nodes[node]:
                raise OSError(errno.ENOENT, "")
            return self.entry(self.nodes[node][names[0]])
        if operation in (GETATTR, SETATTR):
            if operation == SETATTR and struct.unpack_from("<I", data)[0] & IS_TRUNCATED:
                size, = struct.unpack_from("<Q", data, 16)
                self.nodes[node] = self.nodes[node][:size].ljust(size, b"\0")
            return struct.pack("<Q2I", 0, 0, 0) + self.attributes(node)
        if operation == MKDIR:
            return self.entry(self.add(node, data[8:].rstrip(b"\0"), {}))
        if operation == CREATE:
            return self.entry(self.add(node, data[16:].rstrip(b"\0"), b"")) + struct.pack("<QIi", 0, IS_DIRECT, 0)
        if operation in (OPEN, OPENDIR):
            return struct.pack("<QIi", 0, IS_DIRECT, 0)
        if operation == READ:
            offset, size = struct.unpack_from("<QI", data, 8)
            return self.nodes[node][offset:offset + size]
        if operation == WRITE:
            offset, size = struct.unpack_from("<QI", data, 8)
            content = self.nodes[node].ljust(offset, b"\0")
            self.nodes[node] = content[:offset] + data[40:40 + size] + content[offset + size:]
            return struct.pack("<II", size, 0)
        if operation in (RENAME, RENAME2):
            begin = 8 if operation == RENAME else 16
            old, new = data[begin:].rstrip(b"\0").split(b"\0")
            self.nodes[struct.unpack_from("<Q", data)[0]][new] = self.nodes[node].pop(old)
            return b""
        if operation == UNLINK:
            del self.nodes[node][names[0]]
            return b""
        if operation in (READDIR, RELEASE, RELEASEDIR, FLUSH, ACCESS):
            return b""
        raise OSError(errno.ENOSYS, "")


class Mirror(Server):
    """Shows another folder: a machine's view of it."""

    def __init__(self, place, switches, shown):
        super().__init__(place, switches)
        self.nodes = {1: shown}  # a node is a path, a handle is a descriptor of ours

    def attributes(self, node):
        state = os.lstat(self.nodes[node])
        times = [int(moment) for moment in (state.st_atime, state.st_mtime, state.st_ctime)]
        fractions = [moment % 10**9 for moment in (state.st_atime_ns, state.st_mtime_ns, state.st_ctime_ns)]
        kind = stat.S_IFDIR | 0o777 if stat.S_ISDIR(state.st_mode) else stat.S_IFREG | 0o666
        return struct.pack("<6Q10I", node, state.st_size, state.st_blocks, *times, *fractions, kind, 1, 0, 0, 0, 4096, 0)

    def node_of(self, folder, name):
        path = os.path.join(self.nodes[folder], os.fsdecode(name))
        found = [node for node, known in self.nodes.items() if known == path]
        node = found[0] if found else len(self.nodes) + 1
        self.nodes[node] = path
        return node

    def opened(self, node, flags):
        # Nothing is made here that the kernel did not ask for by CREATE; it adds the offset of O_APPEND itself.
        return os.open(self.nodes[node], flags & ~os.O_APPEND, 0o666)

    def answer(self, operation, node, data):
        if operation == INIT:
            return super().answer(operation, node, data)
        if operation == LOOKUP:
            return self.entry(self.node_of(node, data.rstrip(b"\0")))
        if operation in (GETATTR, SETATTR):
            if operation == SETATTR and struct.unpack_from("<I", data)[0] & IS_TRUNCATED:
                os.truncate(self.nodes[node], struct.unpack_from("<Q", data, 16)[0])
            return struct.pack("<Q2I", 0, 0, 0) + self.attributes(node)
        if operation == MKDIR:
            made = self.node_of(node, data[8:].rstrip(b"\0"))
            os.mkdir(self.nodes[made])
            return self.entry(made)
        if operation == CREATE:
            made = self.node_of(node, data[16:].rstrip(b"\0"))
            handle = self.opened(made, struct.unpack_from("<I", data)[0] | os.O_CREAT)
            return self.entry(made) + struct.pack("<QIi", handle, IS_DIRECT, 0)
        if operation == OPEN:
            return struct.pack("<QIi", self.opened(node, struct.unpack_from("<I", data)[0]), IS_DIRECT, 0)
        if operation == OPENDIR:
            return struct.pack("<QIi", 0, 0, 0)
        if operation == READDIR:
            return self.names(node, struct.unpack_from("<Q", data, 8)[0])
        if operation == READ:
            handle, offset, size = struct.unpack_from("<QQI", data)
            return os.pread(handle, size, offset)
        if operation == WRITE:
            handle, offset, size = struct.unpack_from("<QQI", data)
            return struct.pack("<II", os.pwrite(handle, data[40:40 + size], offset), 0)
        if operation in (RENAME, RENAME2):
            begin = 8 if operation == RENAME else 16
            old, new = data[begin:].rstrip(b"\0").split(b"\0")
            os.rename(self.nodes[self.node_of(node, old)], self.nodes[self.node_of(struct.unpack_from("<Q", data)[0], new)])
            return b""
        if operation == UNLINK:
            os.unlink(self.nodes[self.node_of(node, data.rstrip(b"\0"))])
            return b""
        if operation == RELEASE:
            os.close(struct.unpack_from("<Q", data)[0])
            return b""
        if operation in (RELEASEDIR, FLUSH, FSYNC, ACCESS):
            return b""
        raise OSError(errno.ENOSYS, "")

    def names(self, node, begin):
        """One at a time."""
        names = sorted(os.listdir(self.nodes[node]))
        if begin >= len(names):
            return b""
        name = os.fsencode(names[begin])
        return struct.pack("<2Q2I", begin + 2, begin + 1, len(name), 0) + name.ljust((len(name) + 7) & ~7, b"\0")


class SharedFolder:
    """Its server is another process: one that waits for an answer of its own could not even be killed."""

    def __init__(self, *arguments):
        self.place = arguments[0]
        self.server = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.server.stdout.readline() != "ready\n":
            self.server.wait()
            self.server.stdout.close()
            raise OSError("no file system of one's own may be mounted here")

    def end(self):
        self.server.kill()  # nobody waits for its answers any more
        self.server.wait()
        self.server.stdout.close()
        subprocess.run(["umount", "-l", self.place], check=True)


def has_shared_folders():
    """In a mount namespace of one's own."""
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as switches:
        try:
            SharedFolder(place, switches).end()
        except OSError:
            return False
        return True


if __name__ == "__main__":
    server = (Mirror if len(sys.argv) > 3 else Server)(*sys.argv[1:])
    print("ready", flush=True)
    server.serve()
