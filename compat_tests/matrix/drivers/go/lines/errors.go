package lines

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
)

// The table is handed down by who starts the driver: franz-go has names of its own for some codes, and sarama has none.
var names = sync.OnceValue(func() map[string]string {
	table := map[string]string{}
	if given := os.Getenv("KAFKA_ERROR_NAMES"); given != "" {
		if err := json.Unmarshal([]byte(given), &table); err != nil {
			fmt.Fprintln(os.Stderr, "KAFKA_ERROR_NAMES cannot be read:", err)
		}
	}
	return table
})

// NameOf is Kafka's name of an error code.
func NameOf(code int16) string {
	if name, known := names()[strconv.Itoa(int(code))]; known {
		return name
	}
	return fmt.Sprintf("CODE_%d", code)
}

// Refusal is the error that a code in an answer stands for, nil for 0.
func Refusal(code int16, message *string) error {
	if code == 0 {
		return nil
	}
	refused := Refused{Name: NameOf(code)}
	if message != nil {
		refused.Message = *message
	}
	return refused
}
