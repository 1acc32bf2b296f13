"""ApiVersions (18), versions 0-4: what this broker serves, and which features its cluster has turned on.

The response header is always version 0, since a client asks this before it knows anything. From 3 on the client
names itself; 4 may carry features whose lowest level is 0, which older clients cannot read (KAFKA-17492).
The features steer the Java client as much as the versions do.
"""

import re

from ottla.metadata.features import SUPPORTED_FEATURES, finalized_features
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def _names_itself_well(request: ApiVersionsRequest) -> bool:
    return bool(
        _SOFTWARE_NAME.fullmatch(request.client_software_name)
        and _SOFTWARE_NAME.fullmatch(request.client_software_version)
    )


@serves(ApiVersionsRequest)
def handle_api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """List the registered APIs and the features."""
    if context.api_version >= 3 and not _names_itself_well(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
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
