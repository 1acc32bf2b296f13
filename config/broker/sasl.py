"""Broker configs: SASL; Ottla does not serve it yet."""

from ottla.config.broker.rows import (
    HIGH,
    LOW,
    PER_BROKER,
    Row,
    double,
    integer,
    java_class,
    list_of,
    long,
    password,
    short,
    string,
)
from ottla.config.validators import ValidList

ROWS: tuple[Row, ...] = (
    list_of(
        "sasl.enabled.mechanisms",
        ("GSSAPI",),
        "SASL mechanisms that clients may use.",
        rule=ValidList(),
        mode=PER_BROKER,
    ),
    string(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "SASL mechanism among brokers.",
        mode=PER_BROKER,
    ),
    string(
        "sasl.mechanism.controller.protocol",
        "GSSAPI",
        "SASL mechanism towards controllers.",
        importance=HIGH,
    ),
    password(
        "sasl.jaas.config",
        None,
        "Login modules and their options, in the format of JAAS.",
        mode=PER_BROKER,
    ),
    java_class(
        "sasl.server.callback.handler.class",
        None,
        "The Java class that checks credentials on the server.",
    ),
    java_class(
        "sasl.client.callback.handler.class",
        None,
        "The Java class that supplies credentials as a client.",
    ),
    integer(
        "sasl.server.max.receive.size",
        524_288,
        "Largest message accepted before authentication is finished.",
    ),
    java_class(
        "sasl.login.class",
        None,
        "The Java class that logs in.",
    ),
    java_class(
        "sasl.login.callback.handler.class",
        None,
        "The Java class that answers a login's questions.",
    ),
    integer(
        "sasl.login.connect.timeout.ms",
        None,
        "How long connecting to an OAuth provider may take.",
        importance=LOW,
    ),
    integer(
        "sasl.login.read.timeout.ms",
        None,
        "How long an answer of an OAuth provider may take.",
        importance=LOW,
    ),
    long(
        "sasl.login.retry.backoff.ms",
        100,
        "First pause after a failed login.",
        importance=LOW,
    ),
    long(
        "sasl.login.retry.backoff.max.ms",
        10_000,
        "Longest pause after failed logins.",
        importance=LOW,
    ),
    double(
        "sasl.login.refresh.window.factor",
        0.8,
        "Share of a credential's life after which it is refreshed.",
        mode=PER_BROKER,
    ),
    double(
        "sasl.login.refresh.window.jitter",
        0.05,
        "Random share added to that.",
        mode=PER_BROKER,
    ),
    short(
        "sasl.login.refresh.min.period.seconds",
        60,
        "Shortest wait before a credential is refreshed.",
        mode=PER_BROKER,
    ),
    short(
        "sasl.login.refresh.buffer.seconds",
        300,
        "Time kept free before a credential expires.",
        mode=PER_BROKER,
    ),
    string(
        "sasl.kerberos.service.name",
        None,
        "Kerberos name of the brokers.",
        mode=PER_BROKER,
    ),
    string(
        "sasl.kerberos.kinit.cmd",
        "/usr/bin/kinit",
        "Path of kinit.",
        mode=PER_BROKER,
    ),
    double(
        "sasl.kerberos.ticket.renew.window.factor",
        0.8,
        "Share of a ticket's life after which it is renewed.",
        mode=PER_BROKER,
    ),
    double(
        "sasl.kerberos.ticket.renew.jitter",
        0.05,
        "Random share added to that.",
        mode=PER_BROKER,
    ),
    long(
        "sasl.kerberos.min.time.before.relogin",
        60_000,
        "Pause between attempts to renew.",
        mode=PER_BROKER,
    ),
    list_of(
        "sasl.kerberos.principal.to.local.rules",
        ("DEFAULT",),
        "Rules that turn a Kerberos principal into a user name.",
        rule=ValidList(),
        mode=PER_BROKER,
    ),
)
