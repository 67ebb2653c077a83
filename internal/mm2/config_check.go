package mm2

func (c *Config) checkAll() {}
