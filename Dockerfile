# A server of the environments that need no browser and no Java; docs/serving.md says how to use it.
ARG PYTHON=python:3.12.11-slim-bookworm

FROM ${PYTHON} AS build
ARG EXTRAS=babyai,multiagent,search,serve,view
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY agentgym_envs agentgym_envs
COPY adapters adapters
RUN python -m venv /opt/agentgym && \
    /opt/agentgym/bin/pip install --no-cache-dir --disable-pip-version-check ".[${EXTRAS}]"

FROM ${PYTHON}
LABEL org.opencontainers.image.title="agentgym-envs" \
      org.opencontainers.image.description="A Gymnasium suite of text environments for LLM agents" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 agentgym && \
    useradd --uid 10001 --gid agentgym --no-create-home --shell /usr/sbin/nologin agentgym && \
    install --directory --owner agentgym --group agentgym /var/cache/agentgym /data
COPY --from=build /opt/agentgym /opt/agentgym
ENV PATH=/opt/agentgym/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    AGENTGYM_CACHE=/var/cache/agentgym
USER 10001:10001
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["agentgym"]
# Bound to every interface, so the server refuses to start without AGENTGYM_TOKEN.
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
