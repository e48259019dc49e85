"""What Schemathesis cannot learn from the document: NDJSON, and refusals that no schema can foresee."""

import itertools
import json
import re

import jsonschema_rs
import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.core.parameters import ParameterLocation
from schemathesis.openapi.checks import RejectedPositiveData

# `METHOD PATH`, and then the place and the message of an issue, of a request that is as its schema says -> why it is refused
BEYOND_SCHEMAS = {
    r"POST /v1/decisions/\{decision\} ask\b": "what may be asked depends on the kind, which is in the path: a batch has it in the line",
    r"(PUT|POST) .* (snapshot\.)?node\.metadata\.name: must be .* as in the path": "the name is in the path, too",
    r"pageToken: .*\b(is not one that|belongs to another)": "only what was answered is one",
    r"labelSelector: ": "a grammar of its own",
    r"since: is later than until": "one member is held against another",
    r"outcomes\[\d+\]\.(after: is later than|reason: must be empty for|object\.metadata\.uid: must be) ": "the same",
    r"ask\.pod\.spec\.\S+: no such field; `": "a name that is nearly one of a probe's",
    r"ask\.container: the pod has no container": "the same",
    r": two containers (are named|have the id) ": "what is unique in a list is so by one member",
    r"\.metadata\.uid: uid .* is also that of": "the same",
    r"\.id: device .* is also": "the same",
    r"machine\.\S+: (CPU \d+ is |core \d+ |NUMA node \d+ is |has \d+ )": "the lists of a machine do not fit together",
    r"machine\.offlineCpus: must be a CPU list": "a range that ends before it begins",
    r"stats\.node\.nodeName: the stats are of node": "two names are held against each other",
    r": the amounts add up to more than exact arithmetic holds": "a sum",
    r": quantity `[^`]*` is (absurdly large|out of range)": "a text that stands for too large a number",
    r": duration `[^`]*` is out of range": "the same",
    r"runtime\b.*: too big: expected int": "the same, of a protobuf",
    r"ask\.outcomes\b.*: an outcome comes once at least": "a sum of what texts say",
    r"allocated_pods_state: (the text of a state file|invalid input: expected object)": "a text is read as JSON",
    r"POST /v1/why documents: (no document is about a|the history has no) pod": "which documents are about a pod is found by content",
    r"POST /v1/lint kubeletConfiguration: is needed": "whether what is stored has one",
}
# the other problems are of what is well formed: of what is not there, of what a decision lacks, of what is too much
OF_FORM = {"malformed_body", "malformed_json", "bad_request", "invalid_input", "invalid_query", "unknown_kind"}


def problems(response):
    """Those that are answered: one, or one a line."""
    if "json" not in response.headers.get("content-type", [""])[0]:
        return []
    answers = [json.loads(line) for line in response.text.split("\n") if line != ""]
    return [answer.get("problem", answer) for answer in answers if "problem" in answer or "requestId" in answer]


def is_beyond_schemas(problem, case):
    if problem["code"] not in OF_FORM:
        return True
    told = [f"{issue['path']}: {issue['message']}" for issue in problem.get("issues", [])] or [problem["detail"]]
    return all(any(re.search(beyond, f"{case.operation.label} {one}") for beyond in BEYOND_SCHEMAS) for one in told)


def is_taken_for_less(case):
    """Whether it is as its schema says without what counts as absent: nulls, under whatever name, and `__proto__`."""
    if any(part.mode.is_negative for place, part in case.meta.components.items() if place != ParameterLocation.BODY):
        return False
    document = case.operation.schema.raw_schema
    body = document["paths"][case.operation.path][case.operation.method]["requestBody"]
    schema = {"components": document["components"], **body["content"][case.media_type]["schema"]}
    return jsonschema_rs.Draft202012Validator(schema).is_valid(present(case.body))


def present(value):
    if isinstance(value, list):
        return [present(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: present(member) for name, member in value.items() if member is not None and name != "__proto__"}


USES = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Lets what is as its schema says come further: to what is beyond schemas."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"{case.headers['Idempotency-Key'][:200]}{next(USES)}"
    rename_twins(case.body)
    if case.operation.label.startswith("PUT ") and isinstance(case.body, dict):
        case.path_parameters["node"] = case.body["node"]["metadata"]["name"]
    if case.operation.label.endswith("/turns") and isinstance(case.body, dict) and case.body.get("snapshot") is not None:
        case.path_parameters["node"] = case.body["snapshot"]["node"]["metadata"]["name"]


def rename_twins(value):
    """Gives each container of a pod a name of its own."""
    if isinstance(value, dict):
        lists = [value.get(name) for name in ("initContainers", "containers")]
        containers = [one for members in lists if isinstance(members, list) for one in members if isinstance(one, dict)]
        for number, container in enumerate(containers[1:]):
            if isinstance(container.get("name"), str):
                container["name"] = f"c{number}"
        for member in value.values():
            rename_twins(member)
    elif isinstance(value, list):
        for item in value:
            rename_twins(item)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    told = problems(response)
    if isinstance(failure, RejectedPositiveData):
        return told == [] or not all(is_beyond_schemas(problem, case) for problem in told)
    if isinstance(failure, AcceptedNegativeData):
        # a line of it is refused, or it is by a status that is not in Schemathesis' list
        return told == [] and not is_taken_for_less(case)
    return True


@schemathesis.check
def lines_are_taken(ctx, response, case):
    """`positive_data_acceptance` for what a batch answers on its lines."""
    if case.media_type == "application/x-ndjson" and case.meta is not None and case.meta.generation.mode.is_positive:
        refused = [problem for problem in problems(response) if not is_beyond_schemas(problem, case)]
        assert refused == [], f"a line that the schema allows is refused: {refused[0]}"


@schemathesis.serializer("application/x-ndjson")
def one_line(ctx, value):
    """The example is a text of several."""
    return value if isinstance(value, str) else json.dumps(value)


@schemathesis.deserializer("application/x-ndjson")
def first_line(ctx, response):
    return json.loads(response.text.split("\n")[0])


@schemathesis.deserializer("text/csv")
def text_of(context, response):
    """A page as CSV has no members that a link could follow."""
    return response.text
