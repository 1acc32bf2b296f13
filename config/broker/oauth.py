"""Broker configs: OAUTHBEARER (KIP-255, KIP-768, KIP-1139); Ottla does not serve it yet."""

from ottla.config.broker.rows import LOW, Row, boolean, integer, java_class, list_of, long, password, string
from ottla.config.validators import OneOfIgnoringCase, ValidList, between

ROWS: tuple[Row, ...] = (
    string(
        "sasl.oauthbearer.token.endpoint.url",
        None,
        "Where tokens are fetched.",
    ),
    string(
        "sasl.oauthbearer.jwks.endpoint.url",
        None,
        "Where the keys that sign tokens are fetched.",
    ),
    long(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        "How often those keys are fetched again.",
        importance=LOW,
    ),
    long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        "First pause after a failed fetch of the keys.",
        importance=LOW,
    ),
    long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10_000,
        "Longest pause after failed fetches of the keys.",
        importance=LOW,
    ),
    list_of(
        "sasl.oauthbearer.expected.audience",
        (),
        "Audiences of which a token must name one.",
        rule=ValidList(),
        importance=LOW,
    ),
    string(
        "sasl.oauthbearer.expected.issuer",
        None,
        "The issuer that a token must name.",
        importance=LOW,
    ),
    integer(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        "Difference of clocks that is forgiven.",
        importance=LOW,
    ),
    string(
        "sasl.oauthbearer.scope",
        None,
        "Scope asked for when a token is fetched.",
    ),
    string(
        "sasl.oauthbearer.scope.claim.name",
        "scope",
        "Name of the claim with the scope.",
        importance=LOW,
    ),
    string(
        "sasl.oauthbearer.sub.claim.name",
        "sub",
        "Name of the claim with the subject.",
        importance=LOW,
    ),
    java_class(
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "The Java class that fetches tokens.",
    ),
    java_class(
        "sasl.oauthbearer.jwt.validator.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "The Java class that checks tokens.",
    ),
    string(
        "sasl.oauthbearer.client.credentials.client.id",
        None,
        "Client id for the client credentials grant.",
    ),
    password(
        "sasl.oauthbearer.client.credentials.client.secret",
        None,
        "Client secret for the client credentials grant.",
    ),
    string(
        "sasl.oauthbearer.assertion.algorithm",
        "RS256",
        "Algorithm that signs a generated assertion.",
        rule=OneOfIgnoringCase(("ES256", "RS256")),
    ),
    string(
        "sasl.oauthbearer.assertion.claim.aud",
        None,
        "Audience claim of a generated assertion.",
    ),
    integer(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        300,
        "Life of a generated assertion.",
        rule=between(0, 86_400),
        importance=LOW,
    ),
    string(
        "sasl.oauthbearer.assertion.claim.iss",
        None,
        "Issuer claim of a generated assertion.",
    ),
    boolean(
        "sasl.oauthbearer.assertion.claim.jti.include",
        False,
        "Whether a generated assertion has a unique id.",
    ),
    integer(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        60,
        "How far in the past a generated assertion becomes valid.",
        rule=between(0, 3600),
        importance=LOW,
    ),
    string(
        "sasl.oauthbearer.assertion.claim.sub",
        None,
        "Subject claim of a generated assertion.",
    ),
    string(
        "sasl.oauthbearer.assertion.file",
        None,
        "File with a ready assertion.",
    ),
    string(
        "sasl.oauthbearer.assertion.private.key.file",
        None,
        "File with the key that signs assertions.",
    ),
    password(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        None,
        "Password of that key.",
    ),
    string(
        "sasl.oauthbearer.assertion.template.file",
        None,
        "File with a template of header and claims of an assertion.",
    ),
)
