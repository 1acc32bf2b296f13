"""ApiVersions (18), versions 0-4: what this broker serves, and which features its cluster has turned on.

The response header is always version 0, since a client asks this before it knows anything. From 3 on the client
names itself; 4 may carry features whose lowest level is 0, which older clients cannot read (KAFKA-17492).
The features steer the Java client as much as the versions do.

Every client asks this first, and all get the same until the metadata change: it is encoded once for each version.
"""

import re

from ottla.metadata.features import SUPPORTED_FEATURES, finalized_features
from ottla.server.context import RequestContext
from ottla.server.registry import Encoded, serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.wire.schema import encode

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def _names_itself_well(request: ApiVersionsRequest) -> bool:
    return bool(
        _SOFTWARE_NAME.fullmatch(request.client_software_name)
        and _SOFTWARE_NAME.fullmatch(request.client_software_version)
    )


@serves(ApiVersionsRequest)
def handle_api_versions(
    context: RequestContext, request: ApiVersionsRequest
) -> ApiVersionsResponse | Encoded:
    """List the registered APIs and the features."""
    broker, version = context.broker, context.api_version
    if version >= 3 and not _names_itself_well(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    state = broker.image.last_offset, broker.store.kraft_version
    kept = broker.api_versions.get(version)
    if kept is None or kept[0] != state:
        kept = broker.api_versions[version] = state, Encoded(encode(_answer(context), version))
    return kept[1]


def _answer(context: RequestContext) -> ApiVersionsResponse:
    broker = context.broker
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=registration.api_key,
                min_version=registration.advertised_min,
                max_version=registration.max_version,
            )
            for registration in broker.registry.values()
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=feature.min_version, max_version=feature.max_version)
            for name, feature in SUPPORTED_FEATURES.items()
            if feature.min_version > 0 or context.api_version >= 4
        ],
        finalized_features_epoch=broker.image.last_offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized_features(broker.image.features, broker.store.kraft_version).items()
        ],
    )
