"""Ports for servers that a test starts later, or never."""

import socket


def free_port() -> int:
    """A port without a server, which no other process is given while this one lives.

    The socket stays bound and never listens: connections are refused, and the system assigns the port to no other
    program. A server that asks for this port gets it, as servers set SO_REUSEADDR.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        holder.detach()  # the system closes it at the end of the process
    return port
