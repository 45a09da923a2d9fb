# The service and its worker; models and database run in other containers (compose.yaml).
# With other extras: docker build --build-arg EXTRAS="mcp" .
FROM python:3.12-slim-trixie
ARG EXTRAS="mcp telemetry s3 ocr"
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 UV_COMPILE_BYTECODE=1 UV_NO_CACHE=1 \
    UV_PROJECT_ENVIRONMENT=/opt/rag VIRTUAL_ENV=/opt/rag PATH=/opt/rag/bin:$PATH
WORKDIR /app
RUN pip install --no-cache-dir uv==0.13.9 && useradd --uid 1000 --create-home rag

# The dependencies, as locked in uv.lock, are a separate layer, so that code changes do not rebuild it.
COPY pyproject.toml uv.lock ./
RUN for extra in $EXTRAS; do set -- "$@" --extra "$extra"; done \
    && uv sync --frozen --no-install-project "$@"

COPY README.md LICENSE ./
COPY rag_service ./rag_service
COPY indices ./indices
COPY prompts ./prompts
COPY evals ./evals
RUN uv pip install --no-deps .
USER 1000
RUN rag-service models pull
WORKDIR /home/rag
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=3)"]
ENTRYPOINT ["rag-service"]
CMD ["serve"]
