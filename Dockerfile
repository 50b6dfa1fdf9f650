# `headstart serve` as a user without rights; docs/serving.md says how to build and run it.
FROM python:3.11-slim AS build
# Indexes of packages, if not pip's own: of all packages, and of torch's builds for the CPU.
ARG PIP_INDEX_URL
ARG TORCH_INDEX_URL
WORKDIR /build
RUN python -m venv /opt/headstart
# torch by itself, first: its layer is large, and lasts until the constraint changes.
COPY constraints.txt ./
RUN /opt/headstart/bin/pip install --no-cache-dir -c constraints.txt ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} torch
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/headstart/bin/pip install --no-cache-dir -c constraints.txt ".[serve]"

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home headstart && install --directory --owner headstart /cache
COPY --from=build /opt/headstart /opt/headstart
# Nothing but /cache, for downloaded models, is written to, so that the rest of the container may be read-only.
ENV PATH=/opt/headstart/bin:$PATH HOME=/cache HEADSTART_HOME=/cache PYTHONDONTWRITEBYTECODE=1
VOLUME /cache
USER 10001
WORKDIR /models
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=2m CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/api/ready', timeout=4)"]
# In this form the server itself is process 1 and gets SIGTERM.
ENTRYPOINT ["headstart", "serve", "--host", "0.0.0.0"]
CMD ["words-mini", "elmo-mini", "bert-mini"]
