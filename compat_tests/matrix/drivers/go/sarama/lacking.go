// What sarama has no requests for.

package main

import "ottla/matrix/lines"

const (
	noShareGroups = lines.Unsupported("sarama has no share groups")
	noLeaderEpoch = lines.Unsupported("sarama has no OffsetForLeaderEpoch request")
)

func (d *driver) LeaderEpochEnd(lines.None) (any, error) { return nil, noLeaderEpoch }

func (d *driver) ShareJoin(lines.None) (any, error) { return nil, noShareGroups }

func (d *driver) SharePoll(lines.None) (any, error) { return nil, noShareGroups }

func (d *driver) ShareAcknowledge(lines.None) (any, error) { return nil, noShareGroups }

func (d *driver) ShareLeave(lines.None) (any, error) { return nil, noShareGroups }
