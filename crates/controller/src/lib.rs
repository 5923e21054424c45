//! The controller: gRPC services, leases, ingest.
