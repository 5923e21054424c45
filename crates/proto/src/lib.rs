//! The gRPC API of klab: generated code and the conversions to and from the model.
