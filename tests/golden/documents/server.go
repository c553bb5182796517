// Package main serves counters over HTTP.
package main

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"sync"
)

// errUnknown is returned for a counter that was never added to.
var errUnknown = errors.New("unknown counter")

// Store keeps the values of all counters.
type Store struct {
	mu     sync.Mutex
	values map[string]int64
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{values: make(map[string]int64)}
}

// Add adds to a counter, which is made if there is none, and returns its value.
func (s *Store) Add(name string, amount int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] += amount
	return s.values[name]
}

// Read returns the value of a counter.
func (s *Store) Read(name string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[name]
	if !ok {
		return 0, errUnknown
	}
	return value, nil
}

type answer struct {
	Value   int64  `json:"value,omitempty"`
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
}

func handle(store *Store) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		switch r.Method {
		case http.MethodGet:
			value, err := store.Read(name)
			if errors.Is(err, errUnknown) {
				reply(w, http.StatusNotFound, answer{Error: "unknown", Message: name + " is not known"})
				return
			}
			reply(w, http.StatusOK, answer{Value: value})
		case http.MethodPost:
			var body struct{ Amount int64 }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				reply(w, http.StatusBadRequest, answer{Error: "body", Message: err.Error()})
				return
			}
			reply(w, http.StatusOK, answer{Value: store.Add(name, body.Amount)})
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}
}

func reply(w http.ResponseWriter, status int, body answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.Print(err)
	}
}

func main() {
	http.HandleFunc("/counters/{name}", handle(NewStore()))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
